/** The limits and guarantees of a group, changed live, with what is used beside them. */
import { Alert, Button, Input } from "antd";
import { Fragment, useState } from "react";
import { api, asked, atItsField, Refusal } from "@/api/client";
import { keys } from "@/api/news";
import { slow, troubleWords } from "@/look/parts";
import { amountOf, Bar } from "@/overview/QuotaPanel";
import { useSession } from "@/session/session";
import { useWords } from "@/words";
import { groupWords } from "./groupWords";
import { useAct } from "./parts";
import { type Draft, draftOf, type Group, isCard, lineOf, problemAt, quotaChanges, RESOURCES, type Resource, usedOf } from "./quotas";

type Told = { warnings: readonly string[]; wrong: Record<string, string>; rest: readonly string[] };
const QUIET: Told = { warnings: [], wrong: {}, rest: [] };

/** What was refused, by the field it is about. */
function refused(error: unknown): Told {
  const problems = error instanceof Refusal && error.problems.length > 0 ? error.problems : [{ message: troubleWords(error, ""), facts: {} as Record<string, unknown> }];
  const told: Told = { warnings: [], wrong: {}, rest: [] };
  const rest: string[] = [];
  for (const problem of problems) {
    const place = problemAt(String(problem.facts["at"] ?? ""));
    if (place) told.wrong[`${place.resource} ${place.part}`] = atItsField(problem);
    else rest.push(problem.message);
  }
  return { ...told, rest };
}

export function GroupQuota({ group }: { group: Group }) {
  const say = useWords(groupWords);
  const { who } = useSession();
  const [drafts, setDrafts] = useState<Record<string, Draft>>({});
  const [told, setTold] = useState<Told>(QUIET);
  const changes = quotaChanges(group, drafts);
  const act = useAct(
    (body: NonNullable<typeof changes>) => asked(api.PUT("/api/v1/groups/{name}/quota", { params: { path: { name: group.name } }, body })),
    [keys.people(), keys.quota, keys.queue],
    true,
  );
  const save = () =>
    changes && act.mutate(changes, {
      onSuccess: (after) => {
        setDrafts({});
        setTold({ ...QUIET, warnings: after.warnings ?? [] });
      },
      onError: (error) => setTold(refused(error)),
    });
  const set = (resource: Resource, part: keyof Draft, value: string) =>
    setDrafts((before) => ({ ...before, [resource]: { ...(before[resource] ?? draftOf(group, resource)), [part]: value } }));
  return (
    <section className="stack" style={{ gap: 12 }}>
      <h2 style={{ margin: 0 }}>{say("quota")}</h2>
      {told.rest.length > 0 && <Alert type="error" showIcon role="alert" title={told.rest.join(" ")} />}
      {told.warnings.map((warning) => <Alert key={warning} type="warning" showIcon role="status" title={warning} />)}
      <form
        className="stack"
        style={{ gap: 12 }}
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        <div className="quota-grid">
          {(["resource", "used", "limit", "guaranteed"] as const).map((key) => <span key={key} className="head">{say(key)}</span>)}
          {RESOURCES.map((resource) => (
            <QuotaRow key={resource} group={group} resource={resource} draft={drafts[resource] ?? draftOf(group, resource)} wrong={told.wrong} locked={!who.user.admin} onSet={set} />
          ))}
        </div>
        {who.user.admin ? (
          <div className="row">
            <Button type="primary" htmlType="submit" disabled={!changes} loading={slow(act.isPending)}>{say("save")}</Button>
            <span className="quiet">{changes ? say("quotaHow") : say("nothingChanged")}</span>
          </div>
        ) : <span className="quiet">{say("onlyAdmins")}</span>}
      </form>
    </section>
  );
}

interface RowProps {
  group: Group;
  resource: Resource;
  draft: Draft;
  wrong: Readonly<Record<string, string>>;
  locked: boolean;
  onSet: (resource: Resource, part: keyof Draft, value: string) => void;
}

function QuotaRow({ group, resource, draft, wrong, locked, onSet }: RowProps) {
  const say = useWords(groupWords);
  const line = lineOf(group, resource);
  const used = usedOf(group, resource);
  const notes = (["borrowed", "lent"] as const).filter((key) => line && line[key] > 0).map((key) => say(key, { n: amountOf(resource, line?.[key] ?? 0) }));
  const field = (part: keyof Draft, label: string, placeholder: string) => {
    const problem = wrong[`${resource} ${part}`];
    const id = `wrong-${resource}-${part}`;
    return (
      <div>
        <span className="quiet narrow-label" aria-hidden="true">{say(part)}</span>
        <Input
          aria-label={label}
          placeholder={placeholder}
          value={draft[part]}
          disabled={locked}
          status={problem ? "error" : undefined}
          aria-invalid={problem !== undefined}
          aria-describedby={problem ? id : undefined}
          onChange={(event) => onSet(resource, part, event.target.value)}
        />
        {problem && <div id={id} role="alert" className="state-bad">{problem}</div>}
      </div>
    );
  };
  return (
    <Fragment>
      <strong>{say(resource)}</strong>
      <div data-used={resource}>
        {amountOf(resource, used)}
        <Bar used={used} limit={line?.limit ?? null} label={say(resource)} />
        {notes.length > 0 && <div className="quiet">{notes.join(" · ")}</div>}
      </div>
      {field("limit", say("limitOf", { resource: say(resource) }), say("unlimited"))}
      {isCard(resource) ? field("guaranteed", say("guaranteedOf", { resource: say(resource) }), say("nothing")) : <span className="quiet" title={say("guaranteeWhy")}>–</span>}
    </Fragment>
  );
}
