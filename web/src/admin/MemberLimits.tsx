/** What single members of a group may use at most. Leads divide here what their group has. */
import { Alert, Button, Input, Select } from "antd";
import { useState } from "react";
import { api, asked } from "@/api/client";
import { keys } from "@/api/news";
import { lookWords } from "@/look/words";
import { slow, troubleWords } from "@/look/parts";
import { amountOf, Bar } from "@/overview/QuotaPanel";
import { useWords } from "@/words";
import { groupWords } from "./groupWords";
import { useAct } from "./parts";
import { type Group, RESOURCES, type Resource } from "./quotas";

interface Wish {
  user: string;
  resource: Resource;
  limit: string | null;
}

export function MemberLimits({ group }: { group: Group }) {
  const say = useWords(groupWords);
  const frame = useWords(lookWords);
  const [wish, setWish] = useState<Wish>({ user: "", resource: "nvidia", limit: "" });
  const [trouble, setTrouble] = useState<string | null>(null);
  const act = useAct(
    ({ user, resource, limit }: Wish) => asked(api.PUT("/api/v1/groups/{name}/quota", { params: { path: { name: group.name } }, body: { user, limits: { [resource]: limit } } })),
    [keys.people(), keys.quota, keys.queue],
    true,
  );
  const set = (change: Wish) =>
    act.mutate(change, {
      onSuccess: (after) => {
        setTrouble(after.warnings?.join(" ") || null);
        setWish({ ...wish, limit: "" });
      },
      onError: (error) => setTrouble(troubleWords(error, frame("unreachable"))),
    });
  const lines = group.quotas.filter((one) => one.user !== null);
  return (
    <section className="stack" style={{ gap: 10 }}>
      <h2 style={{ margin: 0 }}>{say("userLimits")}</h2>
      {lines.length === 0 && <span className="quiet">{say("userLimitsNone")}</span>}
      {lines.map((line) => (
        <div key={`${line.user} ${line.resource}`} className="spread">
          <span style={{ flex: 1, minWidth: 160 }}>
            {line.user} · {say(line.resource as Resource)}: {say("ofTotal", { used: amountOf(line.resource, line.used), total: line.limit === null ? say("unlimited") : amountOf(line.resource, line.limit) })}
            <Bar used={line.used} limit={line.limit} label={`${line.user} ${line.resource}`} />
          </span>
          <Button size="small" aria-label={say("takeAwayOf", { resource: line.resource, user: line.user })} onClick={() => set({ user: line.user ?? "", resource: line.resource as Resource, limit: null })}>{say("takeAway")}</Button>
        </div>
      ))}
      {trouble && <Alert type="warning" showIcon role="alert" title={trouble} />}
      <form
        className="row"
        aria-label={say("setFor")}
        onSubmit={(event) => {
          event.preventDefault();
          set(wish);
        }}
      >
        <Select showSearch aria-label={say("user")} placeholder={say("user")} value={wish.user || null} options={group.members.map((one) => ({ value: one.user, label: one.user }))} onChange={(user) => setWish({ ...wish, user })} style={{ width: 150 }} />
        <Select<Resource> aria-label={say("resource")} value={wish.resource} options={RESOURCES.map((value) => ({ value, label: say(value) }))} onChange={(resource) => setWish({ ...wish, resource })} style={{ width: 150 }} />
        <Input aria-label={say("limit")} placeholder={say("limit")} value={wish.limit ?? ""} onChange={(event) => setWish({ ...wish, limit: event.target.value })} style={{ width: 110 }} />
        <Button htmlType="submit" disabled={!wish.user || !wish.limit?.trim()} loading={slow(act.isPending)}>{say("set")}</Button>
      </form>
    </section>
  );
}
