/** Who is in a group, and as what. Leads let plain members go; only admins bring somebody in. */
import { DeleteOutlined } from "@ant-design/icons";
import { Button, Select, Tooltip } from "antd";
import { useConfirm } from "@/look/parts";
import { useSession } from "@/session/session";
import { useWords } from "@/words";
import { groupWords } from "./groupWords";
import { useUsers } from "./parts";
import type { Group } from "./quotas";
import { useSeat } from "./UserGroups";

export function GroupMembers({ group }: { group: Group }) {
  const say = useWords(groupWords);
  const { who } = useSession();
  const seat = useSeat();
  const confirm = useConfirm();
  const remove = async (user: string) => {
    const facts = { user, group: group.name };
    const sure = await confirm({ title: say("removeMemberTitle", facts), lost: say("removeMemberLost", facts), ok: say("remove") });
    if (sure) seat.mutate({ group: group.name, user, seat: "none" });
  };
  const roles = (["member", "lead"] as const).map((value) => ({ value, label: say(value) }));
  return (
    <section className="stack" style={{ gap: 8 }}>
      <h2 style={{ margin: 0 }}>{say("members")}</h2>
      {group.members.length === 0 && <span className="quiet">{say("noMembers")}</span>}
      {group.members.map((one) => {
        const locked = !who.user.admin && one.role === "lead";
        return (
          <div key={one.user} className="spread">
            <span>{one.user}</span>
            <Tooltip title={locked ? say("leadsOnlyAdmins") : undefined}>
              <span className="row" style={{ flexWrap: "nowrap" }}>
                <Select<"member" | "lead"> aria-label={say("roleOf", { user: one.user })} value={one.role === "lead" ? "lead" : "member"} options={roles} disabled={!who.user.admin} onChange={(role) => seat.mutate({ group: group.name, user: one.user, seat: role })} style={{ width: 110 }} />
                <Button icon={<DeleteOutlined />} disabled={locked} aria-label={say("removeOf", { user: one.user })} onClick={() => void remove(one.user)} />
              </span>
            </Tooltip>
          </div>
        );
      })}
      {who.user.admin ? <AddMember group={group} /> : <span className="quiet">{say("onlyAdminsAdd")}</span>}
    </section>
  );
}

function AddMember({ group }: { group: Group }) {
  const say = useWords(groupWords);
  const seat = useSeat();
  const { data } = useUsers();
  const inside = new Set(group.members.map((one) => one.user));
  const others = (data?.items ?? []).filter((one) => !inside.has(one.name)).map((one) => ({ value: one.name, label: one.name }));
  return (
    <Select
      showSearch
      aria-label={say("addMember")}
      placeholder={say("addMember")}
      value={null}
      options={others}
      loading={seat.isPending}
      onChange={(user: string | null) => user && seat.mutate({ group: group.name, user, seat: "member" })}
      style={{ width: 220 }}
    />
  );
}
