/** The cluster, as one likes to see it: coloured by owner, use or health; as a picture or in words. */
import { Segmented, Skeleton } from "antd";
import { useState } from "react";
import { useSearchParams } from "react-router-dom";
import { Nothing } from "@/look/parts";
import { useWords } from "@/words";
import type { Board, View } from "./board";
import { ClusterPicture } from "./ClusterPicture";
import { ClusterTable } from "./ClusterTable";
import { Legend, type Only } from "./Legend";
import { overviewWords } from "./words";

const VIEWS: readonly View[] = ["owner", "use", "health"];

export function useView(): View {
  const [params] = useSearchParams();
  return VIEWS.find((one) => one === params.get("by")) ?? "owner";
}

export function ClusterPanel({ board }: { board: Board | undefined }) {
  const say = useWords(overviewWords);
  const [params, setParams] = useSearchParams();
  const view = useView();
  const asTable = params.get("as") === "table";
  const [only, setOnly] = useState<Only>(undefined);
  const set = (key: string, value: string, usual: string) =>
    setParams((before) => {
      const after = new URLSearchParams(before);
      if (value === usual) after.delete(key);
      else after.set(key, value);
      return after;
    }, { replace: true });
  const views = [{ value: "owner", label: say("byOwner") }, { value: "use", label: say("byUse") }, { value: "health", label: say("byHealth") }];
  const shapes = [{ value: "picture", label: say("picture") }, { value: "table", label: say("table") }];
  return (
    <section className="surface stack" aria-labelledby="cluster-head">
      <div className="spread">
        <h2 id="cluster-head" style={{ margin: 0 }}>{say("cluster")}</h2>
        <div className="row">
          {!asTable && <Segmented aria-label={say("colourBy")} options={views} value={view} onChange={(value) => set("by", value, "owner")} />}
          <Segmented aria-label={say("shownAs")} options={shapes} value={asTable ? "table" : "picture"} onChange={(value) => set("as", value, "picture")} />
        </div>
      </div>
      {!board && <Skeleton active title={false} paragraph={{ rows: 5 }} />}
      {board?.nodes.length === 0 && <Nothing title={say("noNodes")}><span className="quiet">{say("noNodesHow")}</span></Nothing>}
      {board && board.nodes.length > 0 && (asTable ? <ClusterTable board={board} /> : (
        <>
          <ClusterPicture board={board} view={view} only={view === "owner" ? only : undefined} />
          <Legend board={board} view={view} only={only} onOnly={setOnly} />
        </>
      ))}
    </section>
  );
}
