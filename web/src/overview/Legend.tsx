/** What the colours mean. An owner's name makes that one's cards stand out. */
import type { ReactNode } from "react";
import { useLook } from "@/look/theme";
import { useWords } from "@/words";
import { type Board, DARK, LIGHT, namesOn, ownersOf, tonesOf, type View } from "./board";
import { overviewWords } from "./words";

const MOST_NAMED = 12;
export type Only = string | null | undefined;

export function Legend({ board, view, only, onOnly }: { board: Board; view: View; only: Only; onOnly: (only: Only) => void }) {
  const say = useWords(overviewWords);
  const { dark } = useLook();
  const palette = dark ? DARK : LIGHT;
  return (
    <div className="legend">
      {view === "owner" && <Owners board={board} only={only} onOnly={onOnly} />}
      {view === "use" && (
        <span className="legend-item">0% {palette.heat.map((tone) => <Swatch key={tone} tone={tone} />)} 100%</span>
      )}
      {view === "health" && <Item tone={palette.good}>{say("stateready")}</Item>}
      {view !== "health" && <Item tone={palette.free}>{say("free")}</Item>}
      <Item tone={palette.bad} sign="✕" ink={palette.free}>{say("unhealthy")}</Item>
      <Item tone={palette.closed} sign="∕" ink={palette.mark}>{say("closed")}</Item>
    </div>
  );
}

function Owners({ board, only, onOnly }: { board: Board; only: Only; onOnly: (only: Only) => void }) {
  const say = useWords(overviewWords);
  const { dark } = useLook();
  const palette = dark ? DARK : LIGHT;
  const tones = tonesOf(namesOn(board), palette.owners);
  return ownersOf(board).slice(0, MOST_NAMED).map(({ owner, cards }) => {
    const name = owner ?? say("others");
    const tone = (owner && tones.get(owner)) || palette.foreign;
    return (
      <button
        key={name}
        type="button"
        className="legend-item"
        aria-pressed={only === owner}
        title={say("onlyThese", { owner: name })}
        onClick={() => onOnly(only === owner ? undefined : owner)}
      >
        <Swatch tone={tone} />{name} <span className="quiet">{cards}</span>
      </button>
    );
  });
}

function Item({ tone, sign, ink, children }: { tone: string; sign?: string; ink?: string; children: ReactNode }) {
  return <span className="legend-item"><Swatch tone={tone} sign={sign} ink={ink} />{children}</span>;
}

function Swatch({ tone, sign, ink }: { tone: string; sign?: string | undefined; ink?: string | undefined }) {
  return <span className="swatch" aria-hidden="true" style={{ background: tone, color: ink }}>{sign}</span>;
}
