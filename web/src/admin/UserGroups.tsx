/** In which groups somebody is, and as what. Every choice counts at once. */
import { Modal, Select } from "antd";
import { api, asked } from "@/api/client";
import { keys } from "@/api/news";
import { useWords } from "@/words";
import { useAct, useGroups, useUsers } from "./parts";
import { adminWords } from "./words";

type Seat = "member" | "lead" | "none";

export function useSeat() {
  return useAct(
    ({ group, user, seat }: { group: string; user: string; seat: Seat }) => {
      const params = { path: { name: group, user } };
      if (seat === "none") return asked(api.DELETE("/api/v1/groups/{name}/members/{user}", { params }));
      return asked(api.PUT("/api/v1/groups/{name}/members/{user}", { params, body: { role: seat } }));
    },
    [keys.people(), keys.quota],
  );
}

export function UserGroups({ name, onClose }: { name: string | null; onClose: () => void }) {
  const say = useWords(adminWords);
  const { data: users } = useUsers();
  const { data: groups } = useGroups();
  const seat = useSeat();
  const user = users?.items.find((one) => one.name === name);
  const options = (["none", "member", "lead"] as const).map((value) => ({ value, label: say(value === "none" ? "notIn" : value) }));
  return (
    <Modal open={name !== null} title={say("groupsOf", { name })} onCancel={onClose} onOk={onClose} okText={say("done")} cancelButtonProps={{ style: { display: "none" } }}>
      <div className="stack" style={{ gap: 10 }}>
        {(groups?.items ?? []).map((group) => (
          <div key={group.name} className="spread">
            <span>{group.name}</span>
            <Select<Seat>
              aria-label={group.name}
              value={(user?.memberships.find((one) => one.group === group.name)?.role as Seat | undefined) ?? "none"}
              options={options}
              disabled={seat.isPending}
              onChange={(wish) => name && seat.mutate({ group: group.name, user: name, seat: wish })}
              style={{ width: 140 }}
            />
          </div>
        ))}
      </div>
    </Modal>
  );
}
