/** What one may use, and what one's groups may use, beside what is used. */
import { useQuery } from "@tanstack/react-query";
import { Skeleton } from "antd";
import { api, asked, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { bytes, Trouble } from "@/look/parts";
import { useSession } from "@/session/session";
import { useWords } from "@/words";
import { ScrollBox } from "./ScrollBox";
import { overviewWords } from "./words";

type Line = Schemas["QuotaOut"];

/** Mine first, then my groups'; of the limits of other members nothing. */
export function mineAndOurs(lines: readonly Line[], me: string, groups: readonly string[]): Line[] {
  const ours = lines.filter((line) => groups.includes(line.group) && (line.user === null || line.user === me));
  return ours.toSorted((a, b) => Number(a.user === null) - Number(b.user === null) || a.group.localeCompare(b.group) || a.resource.localeCompare(b.resource));
}

export const amountOf = (resource: string, value: number): string => (resource === "memory" ? bytes(value) : String(value));

export function QuotaPanel() {
  const say = useWords(overviewWords);
  const { who } = useSession();
  const { data, error, refetch } = useQuery({ queryKey: keys.quota, queryFn: () => asked(api.GET("/api/v1/quota")) });
  const lines = data && mineAndOurs(data.items, who.user.name, who.user.memberships.map((one) => one.group));
  return (
    <section className="surface" aria-labelledby="quota-head" style={{ minWidth: 0 }}>
      <h2 id="quota-head">{say("quota")}</h2>
      {error && <Trouble error={error} again={() => void refetch()} />}
      {!lines && !error && <Skeleton active title={false} />}
      {lines?.length === 0 && <p className="quiet" style={{ margin: 0 }}>{say("quotaNone")}</p>}
      {lines && lines.length > 0 && (
        <ScrollBox labelledBy="quota-head" style={{ display: "grid", gap: 14 }}>
          {lines.map((line) => <QuotaLine key={`${line.group} ${line.user} ${line.resource}`} line={line} />)}
        </ScrollBox>
      )}
    </section>
  );
}

function QuotaLine({ line }: { line: Line }) {
  const say = useWords(overviewWords);
  const show = (value: number) => amountOf(line.resource, value);
  const whose = line.user ? say("myShare", { group: line.group }) : say("groupShare", { group: line.group });
  const sums = line.limit === null ? say("noLimit", { used: show(line.used) }) : say("ofTotal", { used: show(line.used), total: show(line.limit) });
  const notes = (["guaranteed", "borrowed", "lent"] as const).filter((key) => line[key] > 0).map((key) => say(key, { n: show(line[key]) }));
  return (
    <div className="quota-line">
      <div className="spread" style={{ gap: "0 8px" }}>
        <span><strong>{line.resource}</strong> <span className="quiet">{whose}</span></span>
        <span>{sums}</span>
      </div>
      <Bar used={line.used} limit={line.limit} label={`${line.resource} ${whose}`} />
      {notes.length > 0 && <span className="quiet">{notes.join(" · ")}</span>}
    </div>
  );
}

export function Bar({ used, limit, label }: { used: number; limit: number | null; label: string }) {
  if (limit === null) return null;
  const part = limit > 0 ? used / limit : used > 0 ? 1 : 0;
  return (
    <div className="bar" role="meter" aria-label={label} aria-valuenow={Math.round(Math.min(1, part) * 100)} aria-valuemin={0} aria-valuemax={100}>
      <div className={part > 1 ? "over" : undefined} style={{ width: `${Math.min(100, part * 100)}%` }} />
    </div>
  );
}
