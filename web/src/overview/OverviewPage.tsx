/** The whole at a glance: what there is, who waits, how much is mine, and what needs a look. */
import { PlusOutlined } from "@ant-design/icons";
import { Tooltip } from "antd";
import { LinkButton } from "@/look/LinkButton";
import { PageHead, Trouble } from "@/look/parts";
import { FirstSteps } from "@/tour/FirstSteps";
import { useWords } from "@/words";
import { AttentionPanel } from "./AttentionPanel";
import { type Board, tally } from "./board";
import { ClusterPanel, useView } from "./ClusterPanel";
import "./overview.css";
import { QueuePanel, useQueue } from "./QueuePanel";
import { QuotaPanel } from "./QuotaPanel";
import { useBoard } from "./useBoard";
import { overviewWords } from "./words";

const USE_MS = 15_000; // how busy cards are is measured now and then, and is no news
const OTHERWISE_MS = 120_000;

export default function OverviewPage() {
  const say = useWords(overviewWords);
  const view = useView();
  const { data: board, error, refetch } = useBoard(view === "use" ? USE_MS : OTHERWISE_MS);
  return (
    <div className="page stack">
      <PageHead title={say("title")}>
        <LinkButton to="/envs/new" icon={<PlusOutlined />}>{say("newEnv")}</LinkButton>
        <LinkButton to="/jobs/new" type="primary" icon={<PlusOutlined />}>{say("newJob")}</LinkButton>
      </PageHead>
      {error && <Trouble error={error} again={() => void refetch()} />}
      <FirstSteps />
      <Tiles board={board} />
      <ClusterPanel board={board} />
      <div className="columns">
        <AttentionPanel board={board} />
        <QueuePanel />
        <QuotaPanel />
      </div>
    </div>
  );
}

function Tiles({ board }: { board: Board | undefined }) {
  const say = useWords(overviewWords);
  const queue = useQueue();
  const sum = board && tally(board.nodes);
  const tiles: [keyof typeof overviewWords, number | undefined, string?][] = [
    ["nodes", sum?.nodes],
    ["cards", sum?.cards],
    ["free", sum?.free, "good"],
    ["used", sum?.used, "busy"],
    ["unhealthy", sum?.unhealthy, sum?.unhealthy ? "bad" : undefined],
    ["waiting", queue.data?.waiting, queue.data?.waiting ? "warn" : undefined],
  ];
  if (sum?.closed) tiles.splice(5, 0, ["closed", sum.closed, "warn"]);
  if (sum?.simulated) tiles.splice(2, 0, ["simulated", sum.simulated]);
  return (
    <dl className="tiles" style={{ margin: 0 }}>
      {tiles.map(([key, value, tone]) => (
        <Tooltip key={key} title={key === "simulated" ? say("simulatedWhy") : undefined}>
          <div className="tile" data-tile={key}>
            <dt>{say(key)}</dt>
            <dd className={tone && `state-${tone}`}>{value ?? "–"}</dd>
          </div>
        </Tooltip>
      ))}
    </dl>
  );
}
