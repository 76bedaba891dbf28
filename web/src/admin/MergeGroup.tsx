/** One group merged into another: first what would come of it, then the deed. */
import { Alert, App, Button, Select } from "antd";
import { useState } from "react";
import { api, asked, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { slow, useConfirm } from "@/look/parts";
import { amountOf } from "@/overview/QuotaPanel";
import { useWords } from "@/words";
import { groupWords } from "./groupWords";
import { useAct, useGroups } from "./parts";
import type { Group, Resource } from "./quotas";

export function MergeGroup({ group, onMerged }: { group: Group; onMerged: (into: string) => void }) {
  const say = useWords(groupWords);
  const confirm = useConfirm();
  const { notification } = App.useApp();
  const [into, setInto] = useState<string | null>(null);
  const [plan, setPlan] = useState<Schemas["MergeOut"] | null>(null);
  const { data } = useGroups();
  const act = useAct(
    (body: { into: string; preview: boolean }) => asked(api.POST("/api/v1/groups/{name}/merge", { params: { path: { name: group.name } }, body })),
    [keys.people(), keys.quota, keys.policy],
  );
  const others = (data?.items ?? []).filter((one) => one.name !== group.name).map((one) => ({ value: one.name, label: one.name }));
  const merge = async (target: string) => {
    const facts = { group: group.name, into: target };
    if (!(await confirm({ title: say("mergeTitle", facts), lost: say("mergeLost", facts), ok: say("mergeDo") }))) return;
    act.mutate({ into: target, preview: false }, {
      onSuccess: (done) => {
        for (const warning of done.warnings) notification.info({ title: warning, duration: 12 });
        onMerged(target);
      },
    });
  };
  return (
    <section className="stack" style={{ gap: 10 }}>
      <h2 style={{ margin: 0 }}>{say("merge")}</h2>
      <span className="quiet">{say("mergeHow")}</span>
      <div className="row">
        <Select
          showSearch
          aria-label={say("mergeInto")}
          placeholder={say("mergeInto")}
          value={into}
          options={others}
          onChange={(name: string) => {
            setInto(name);
            setPlan(null);
          }}
          style={{ width: 200 }}
        />
        <Button disabled={!into} loading={slow(act.isPending)} onClick={() => into && act.mutate({ into, preview: true }, { onSuccess: setPlan })}>{say("preview")}</Button>
        {plan && <Button danger loading={slow(act.isPending)} onClick={() => void merge(plan.into)}>{say("mergeDo")}</Button>}
      </div>
      {plan && <Plan plan={plan} />}
    </section>
  );
}

function Plan({ plan }: { plan: Schemas["MergeOut"] }) {
  const say = useWords(groupWords);
  const { into, live, running, ended } = plan;
  return (
    <div className="surface stack" style={{ gap: 6 }} role="status">
      <span>{plan.joining.length > 0 ? say("mergeJoining", { n: plan.joining.length, into, names: plan.joining.join(", ") }) : say("mergeNoJoining", { into })}</span>
      {plan.leads_no_more.length > 0 && <span>{say("mergeLeads", { names: plan.leads_no_more.join(", ") })}</span>}
      <span>{say("mergeWork", { live, running, ended })}</span>
      {plan.quotas.length > 0 && <strong>{say("mergeQuotas", { into })}</strong>}
      {plan.quotas.map((line) => (
        <span key={`${line.user} ${line.resource}`}>
          {line.user && `${line.user} · `}{say(line.resource as Resource)}: {say("limit")} {line.limit === null ? say("unlimited") : amountOf(line.resource, line.limit)}
          {line.guaranteed > 0 && ` · ${say("guaranteed")} ${amountOf(line.resource, line.guaranteed)}`}
        </span>
      ))}
      {plan.warnings.map((warning) => <Alert key={warning} type="warning" showIcon title={warning} />)}
    </div>
  );
}
