/** What narrows the list. The text is sent to the server when typing pauses. */
import { SearchOutlined } from "@ant-design/icons";
import { useQuery } from "@tanstack/react-query";
import { Button, Input, Segmented, Select } from "antd";
import { useEffect, useState } from "react";
import { api, asked } from "@/api/client";
import { keys } from "@/api/news";
import { lookWords } from "@/look/words";
import { useSession } from "@/session/session";
import { useWords } from "@/words";
import { jobWords } from "../words";
import { canBeAName, type Filters, isNarrowed, STATES } from "./filters";

const TYPING_MS = 250;

/** Text that is typed now and told a little later; what comes from outside replaces it. */
function useTyped(value: string, tell: (text: string) => void): [string, (text: string) => void] {
  const [typed, setTyped] = useState({ text: value, of: value });
  const text = typed.of === value ? typed.text : value;
  useEffect(() => {
    if (text === value) return undefined;
    const timer = setTimeout(() => tell(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text, value, tell]);
  return [text, (now) => setTyped({ text: now, of: value })];
}

/** One's own groups, those one may look into, and the one of the address. */
function useKnownGroups(shown: string): string[] {
  const { who } = useSession();
  const { data } = useQuery({ queryKey: keys.people("groups"), queryFn: () => asked(api.GET("/api/v1/groups")) });
  const own = who.user.memberships.map((one) => one.group);
  const seen = (data?.items ?? []).map((one) => one.name);
  return [...new Set([...own, ...seen, ...(shown ? [shown] : [])])].toSorted();
}

export function JobFilters({ filters, change }: { filters: Filters; change: (some: Partial<Filters>) => void }) {
  const say = useWords(jobWords);
  const frame = useWords(lookWords);
  const groups = useKnownGroups(filters.group);
  const [search, setSearch] = useTyped(filters.search, (text) => change({ search: text }));
  const [owner, setOwner] = useTyped(filters.owner, (text) => change({ owner: text }));
  const wrong = (text: string) => (text && !canBeAName(text) ? "error" : "");
  return (
    <div className="jobs-filters" role="search">
      <Segmented
        aria-label={say("whose")}
        value={filters.everyone ? "all" : "mine"}
        onChange={(value) => change({ everyone: value === "all", owner: "" })}
        options={[{ value: "mine", label: say("mine") }, { value: "all", label: say("everyone") }]}
      />
      <Input allowClear prefix={<SearchOutlined />} aria-label={say("search")} placeholder={say("search")} value={search} maxLength={63} onChange={(event) => setSearch(event.target.value)} style={{ width: 200 }} />
      <Select
        mode="multiple"
        allowClear
        aria-label={say("states")}
        placeholder={say("anyState")}
        value={filters.states}
        onChange={(states) => change({ states })}
        options={STATES.map((state) => ({ value: state, label: frame(state) }))}
        maxTagCount="responsive"
        style={{ width: 220 }}
      />
      <Select aria-label={say("group")} allowClear showSearch placeholder={say("anyGroup")} value={filters.group || null} options={groups.map((value) => ({ value, label: value }))} onChange={(group) => change({ group: group ?? "" })} style={{ width: 140 }} />
      {filters.everyone && (
        <Input allowClear aria-label={say("owner")} placeholder={say("anyOwner")} value={owner} status={wrong(owner)} title={wrong(owner) && say("noSuchName")} onChange={(event) => setOwner(event.target.value)} style={{ width: 150 }} />
      )}
      {isNarrowed(filters) && <Button type="link" onClick={() => change({ states: [], search: "", group: "", owner: "" })}>{say("clearFilters")}</Button>}
    </div>
  );
}
