/** Free cards that are not together: for whom they are of no use, who waits for that reason, and which moves would help. */
import { useQuery } from "@tanstack/react-query";
import { Grid, Skeleton, Table, type TableColumnsType, Tooltip } from "antd";
import { useMemo } from "react";
import { Link } from "react-router-dom";
import { api, asked } from "@/api/client";
import { Nothing, Trouble } from "@/look/parts";
import { useLanguage, useWords } from "@/words";
import "./fragments.css";
import { type Fragment, type Fragments, inCards, sums, worthALook } from "./fragments";
import { FragmentsRequests } from "./FragmentsRequests";
import { FragmentsWaiting } from "./FragmentsWaiting";
import { fragmentWords } from "./fragmentWords";

const AGAIN_MS = 15_000; // no news tell of it, and with many machines it is dear to work out
const MODES = { never: "neverSays", propose: "proposeSays", move: "moveSays" } as const;
type Mode = keyof typeof MODES;

export function FragmentsView({ q }: { q: string }) {
  const { language } = useLanguage();
  const { data, error, refetch } = useQuery({
    queryKey: ["fragments", language],
    queryFn: () => asked(api.GET("/api/v1/nodes/fragments")),
    refetchInterval: AGAIN_MS,
  });
  return (
    <>
      {error && <Trouble error={error} again={() => void refetch()} />}
      {!data && !error && <div aria-busy="true"><Skeleton active /></div>}
      {data && <Told told={data} q={q} />}
    </>
  );
}

function Told({ told, q }: { told: Fragments; q: string }) {
  const say = useWords(fragmentWords);
  const sum = useMemo(() => sums(told.nodes), [told.nodes]);
  if (sum.cards === 0) return <Nothing title={say("noMachines")} />;
  return (
    <>
      <Tiles told={told} free={sum.free} unusable={sum.unusable} />
      <FragmentsWaiting waiting={told.waiting} none={say(sum.free === 0 ? "allUsed" : "noneApart")} />
      <FragmentsRequests requests={told.requests} learned={told.learned} />
      <ByMachine nodes={told.nodes} closed={told.closed} q={q} />
    </>
  );
}

function Tiles({ told, free, unusable }: { told: Fragments; free: number; unusable: number }) {
  const say = useWords(fragmentWords);
  const mode = (told.mode in MODES ? told.mode : "propose") as Mode;
  const waiting = told.waiting.length;
  return (
    <section aria-label={say("fragments")} className="stack" style={{ gap: 8 }}>
      <dl className="tiles fragment-tiles" style={{ margin: 0 }}>
        <div className="tile" data-tile="free"><dt>{say("free")}</dt><dd>{inCards(free)}</dd></div>
        <Tooltip title={say("unusableWhy")}>
          <div className="tile" data-tile="unusable"><dt>{say("unusable")}</dt><dd className={unusable > 0 ? "state-warn" : undefined}>{inCards(unusable)}</dd></div>
        </Tooltip>
        <div className="tile" data-tile="apart"><dt>{say("waiting")}</dt><dd className={waiting > 0 ? "state-warn" : undefined}>{waiting}</dd></div>
        <div className="tile" data-tile="mode"><dt>{say("moves")}</dt><dd>{say(mode)}</dd></div>
      </dl>
      <div className="row"><span className="quiet">{say(MODES[mode])}</span><Link to="/admin/policy">{say("toPolicy")}</Link></div>
    </section>
  );
}

function ByMachine({ nodes, closed, q }: { nodes: readonly Fragment[]; closed: number; q: string }) {
  const say = useWords(fragmentWords);
  const found = useMemo(() => worthALook(nodes, q), [nodes, q]);
  const narrow = Grid.useBreakpoint().sm === false;
  return (
    <section className="surface" aria-labelledby="where-head" style={{ minWidth: 0 }}>
      <h2 id="where-head">{say("byMachine")}</h2>
      <p className="quiet" style={{ margin: "0 0 12px" }}>{say("unusableWhy")}{closed > 0 && ` ${say("closed", { n: closed })}`}</p>
      <Table
        className="where-table"
        rowKey={({ node, device, model }) => `${node} ${device} ${model}`}
        size="small"
        columns={useColumns(narrow)}
        dataSource={found}
        scroll={narrow ? undefined : { x: "max-content" }}
        locale={{ emptyText: say("noneFree") }}
        pagination={{ pageSize: 20, hideOnSinglePage: true, showSizeChanger: false }}
      />
    </section>
  );
}

/** On a phone the model stands below the machine, so that no number is cut off. */
function useColumns(narrow: boolean): TableColumnsType<Fragment> {
  const say = useWords(fragmentWords);
  return [
    { title: say("machine"), render: (_, { node, model }) => <><Machine node={node} />{narrow && <div className="quiet">{model}</div>}</> },
    { title: say("model"), dataIndex: "model", hidden: narrow },
    { title: say("cards"), align: "right", dataIndex: "cards", hidden: narrow },
    { title: say("freeHere"), align: "right", className: "where-number", render: (_, { free }) => inCards(free) },
    { title: say("unusable"), align: "right", className: "where-number", render: (_, { unusable }) => inCards(unusable) },
  ];
}

function Machine({ node }: { node: string }) {
  const name = encodeURIComponent(node);
  return <Link to={`/admin/nodes?node=${name}&q=${name}`}><code>{node}</code></Link>;
}
