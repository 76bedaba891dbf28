/** Those that wait, in the order in which they are asked. */
import { useQuery } from "@tanstack/react-query";
import { Skeleton } from "antd";
import { Link } from "react-router-dom";
import { api, asked, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { Ago, Trouble } from "@/look/parts";
import { useWords } from "@/words";
import { workPath } from "./CardDetail";
import { ScrollBox } from "./ScrollBox";
import { overviewWords } from "./words";

export const useQueue = () =>
  useQuery({ queryKey: keys.queue, queryFn: () => asked(api.GET("/api/v1/queue", { params: { query: { limit: 50 } } })) });

export function QueuePanel() {
  const say = useWords(overviewWords);
  const { data, error, refetch } = useQueue();
  return (
    <section className="surface" aria-labelledby="queue-head" style={{ minWidth: 0 }}>
      <h2 id="queue-head">{say("queue")}</h2>
      {error && <Trouble error={error} again={() => void refetch()} />}
      {!data && !error && <Skeleton active title={false} />}
      {data?.waiting === 0 && <p className="quiet" style={{ margin: 0 }}>{say("queueEmpty")}</p>}
      {data && data.waiting > 0 && <Line items={data.items} />}
      {data && data.waiting > data.items.length && <p className="quiet" style={{ marginBottom: 0 }}>{say("queueMore", { n: data.waiting })}</p>}
    </section>
  );
}

function Line({ items }: { items: readonly Schemas["QueueLine"][] }) {
  const say = useWords(overviewWords);
  return (
    <ScrollBox labelledBy="queue-head">
      <table className="plain-table">
        <thead>
          <tr>
            <th className="number">{say("position")}</th>
            <th>{say("name")}</th>
            <th className="number">{say("cards")}</th>
            <th className="number">{say("priority")}</th>
            <th>{say("since")}</th>
          </tr>
        </thead>
        <tbody>
          {items.map((one) => (
            <tr key={one.id}>
              <td className="number">{one.position}</td>
              <td className="cut" style={{ maxWidth: 130 }}>
                {one.name ? <Link to={workPath(one.id, one.kind)} title={one.name}>{one.name}</Link> : <span className="quiet">{say("someones")}</span>}
                {one.owner && <div className="quiet cut">{one.mine ? say("mine") : one.owner}</div>}
              </td>
              <td className="number">{one.cards || "–"}</td>
              <td className="number">{one.priority}</td>
              <td style={{ whiteSpace: "nowrap" }}><Ago at={one.submitted_at} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollBox>
  );
}
