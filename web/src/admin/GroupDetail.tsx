/** One group: its limits and guarantees beside what is used, its members, its part under fair share, and its end. */
import { Button, InputNumber, Switch } from "antd";
import { useState } from "react";
import { api, asked } from "@/api/client";
import { keys } from "@/api/news";
import { slow, useConfirm } from "@/look/parts";
import { useSession } from "@/session/session";
import { useWords } from "@/words";
import { GroupMembers } from "./GroupMembers";
import { GroupQuota } from "./GroupQuota";
import { groupWords } from "./groupWords";
import { MemberLimits } from "./MemberLimits";
import { MergeGroup } from "./MergeGroup";
import { useAct } from "./parts";
import type { Group } from "./quotas";

export function GroupDetail({ group, onGone }: { group: Group; onGone: (into: string | undefined) => void }) {
  const { who } = useSession();
  return (
    <div className="stack" style={{ gap: 28 }}>
      <GroupQuota group={group} />
      <MemberLimits group={group} />
      <GroupMembers group={group} />
      {who.user.admin && <FairShare group={group} />}
      {who.user.admin && <MergeGroup group={group} onMerged={onGone} />}
      {who.user.admin && <RemoveGroup group={group} onGone={() => onGone(undefined)} />}
    </div>
  );
}

function FairShare({ group }: { group: Group }) {
  const say = useWords(groupWords);
  const [weight, setWeight] = useState<number | null>(null);
  const act = useAct(
    (body: { weight?: number; fifo?: boolean }) => asked(api.PATCH("/api/v1/groups/{name}", { params: { path: { name: group.name } }, body })),
    [keys.people(), keys.queue],
  );
  const changed = weight !== null && weight !== group.weight;
  return (
    <section className="stack" style={{ gap: 10 }}>
      <h2 style={{ margin: 0 }}>{say("share")}</h2>
      <div className="row">
        <label htmlFor="group-weight">{say("weight")}</label>
        <InputNumber id="group-weight" min={0.001} max={1000} value={weight ?? group.weight} onChange={setWeight} />
        <Button disabled={!changed} loading={slow(act.isPending)} onClick={() => act.mutate({ weight: weight ?? group.weight }, { onSuccess: () => setWeight(null) })}>{say("save")}</Button>
      </div>
      <span className="quiet">{say("weightWhy")}</span>
      <div className="row">
        <Switch id="group-fifo" checked={group.fifo} loading={act.isPending} onChange={(fifo) => act.mutate({ fifo })} />
        <label htmlFor="group-fifo">{say("fifo")}</label>
      </div>
      <span className="quiet">{say("fifoWhy")}</span>
    </section>
  );
}

function RemoveGroup({ group, onGone }: { group: Group; onGone: () => void }) {
  const say = useWords(groupWords);
  const confirm = useConfirm();
  const act = useAct(() => asked(api.DELETE("/api/v1/groups/{name}", { params: { path: { name: group.name } } })), [keys.people(), keys.quota]);
  const ask = async () => {
    const sure = await confirm({ title: say("removeGroupTitle", { group: group.name }), lost: say("removeGroupLost"), ok: say("removeGroup") });
    if (sure) act.mutate(undefined, { onSuccess: onGone });
  };
  return <div><Button danger loading={slow(act.isPending)} onClick={() => void ask()}>{say("removeGroup")}</Button></div>;
}
