/** The cluster as a picture. The canvas is for eyes; beside it stands, for everybody else, the card one is at, in words. */
import { type KeyboardEvent, type MouseEvent, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useLook } from "@/look/theme";
import { useWords } from "@/words";
import { type Board, DARK, inNameOrder, LIGHT, namesOn, tonesOf, type View } from "./board";
import { CardDetail, useCardSentence } from "./CardDetail";
import { draw, type Picture } from "./draw";
import { cornerOf, layOut, moved, type Spot, spotAt } from "./layout";
import { overviewWords } from "./words";

const NARROWEST = 240;
const DETAIL_WIDTH = 280;
const MOVING = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "PageUp", "PageDown", "Home", "End"]);

function useWidth(): [React.RefObject<HTMLDivElement | null>, number] {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const measure = () => setWidth(Math.max(NARROWEST, Math.floor(element.clientWidth)));
    measure();
    const watcher = new ResizeObserver(measure);
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  return [box, width];
}

/** A canvas that is given a size, be it the same, is empty afterwards. */
function resized(canvas: HTMLCanvasElement, width: number, height: number): boolean {
  if (canvas.width === width && canvas.height === height) return false;
  canvas.width = width;
  canvas.height = height;
  return true;
}

interface Marked extends Spot {
  pinned: boolean;
}

export function ClusterPicture({ board, view, only }: { board: Board; view: View; only: string | null | undefined }) {
  const say = useWords(overviewWords);
  const sentence = useCardSentence();
  const { dark } = useLook();
  const [box, width] = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawn = useRef<Picture | null>(null);
  const [marked, setMarked] = useState<Marked | null>(null);
  const nodes = useMemo(() => inNameOrder(board.nodes), [board.nodes]);
  const layout = useMemo(() => layOut(nodes, width), [nodes, width]);

  useEffect(() => {
    const context = canvas.current?.getContext("2d");
    if (!context || !width) return;
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const scale = window.devicePixelRatio || 1;
    if (resized(context.canvas, Math.round(layout.width * scale), Math.round(layout.height * scale))) drawn.current = null;
    context.setTransform(scale, 0, 0, scale, 0, 0);
    const palette = dark ? DARK : LIGHT;
    const picture: Picture = { board, nodes, layout, view, palette, tones: tonesOf(namesOn(board), palette.owners), text: colour("--text"), quiet: colour("--quiet"), warn: colour("--warn"), spot: marked, only };
    draw(context, picture, drawn.current);
    drawn.current = picture;
    canvas.current?.setAttribute("data-drawn", String(performance.now()));
  }, [board, nodes, layout, view, dark, marked, only, width]);

  const pointed = (event: MouseEvent): Spot | null => {
    const frame = event.currentTarget.getBoundingClientRect();
    return spotAt(layout, nodes, event.clientX - frame.left, event.clientY - frame.top);
  };
  const hover = (event: MouseEvent) => {
    if (marked?.pinned) return;
    const spot = pointed(event);
    if (spot?.node !== marked?.node || spot?.card !== marked?.card) setMarked(spot && { ...spot, pinned: false });
  };
  const press = (event: KeyboardEvent) => {
    if (MOVING.has(event.key)) {
      event.preventDefault();
      setMarked({ ...(marked ? moved(marked, event.key, nodes, layout.perColumn) : { node: 0, card: 0 }), pinned: false });
    } else if (event.key === "Enter" && marked) {
      event.preventDefault();
      setMarked({ ...marked, pinned: true });
    } else if (event.key === "Escape") setMarked(null);
  };
  const node = marked ? nodes[marked.node] : undefined;
  const card = marked && node ? node.cards[marked.card] : undefined;
  return (
    <div ref={box} className="cluster" onMouseLeave={() => !marked?.pinned && setMarked(null)}>
      <div
        role="listbox"
        tabIndex={0}
        aria-label={say("pictureLabel", { nodes: nodes.length })}
        aria-activedescendant={card ? "card-marked" : undefined}
        onKeyDown={press}
        onFocus={() => setMarked((was) => was ?? { node: 0, card: 0, pinned: false })}
        onBlur={(event) => !event.currentTarget.parentElement?.contains(event.relatedTarget) && !marked?.pinned && setMarked(null)}
        onMouseMove={hover}
        onMouseDown={(event) => {
          const spot = pointed(event);
          setMarked(spot && { ...spot, pinned: true });
        }}
        style={{ width: layout.width, height: layout.height, maxWidth: "100%" }}
      >
        <canvas ref={canvas} aria-hidden="true" style={{ width: layout.width, height: layout.height, display: "block" }} />
        <div id="card-marked" role="option" aria-selected={card !== undefined} className="heard">
          {node && card ? sentence({ board, node, card }) : say("pictureLabel", { nodes: nodes.length })}
        </div>
      </div>
      {marked && node && card && (
        <Floating corner={cornerOf(layout, marked)} below={layout.cell + 8} width={width} pinned={marked.pinned}>
          <CardDetail board={board} node={node} card={card} {...(marked.pinned && { onClose: () => setMarked(null) })} />
        </Floating>
      )}
    </div>
  );
}

interface FloatingProps {
  corner: { x: number; y: number };
  below: number;
  width: number;
  pinned: boolean;
  children: React.ReactNode;
}

/** Near its card and always inside the picture. Opened by Enter, it takes the focus, so that its links are next. */
function Floating({ corner, below, width, pinned, children }: FloatingProps) {
  const self = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (pinned) self.current?.querySelector<HTMLElement>("a, button")?.focus({ preventScroll: true });
  }, [pinned]);
  const across = Math.min(DETAIL_WIDTH, width);
  const left = Math.max(0, Math.min(corner.x - 12, width - across));
  return (
    <div ref={self} className="card-detail" style={{ left, top: corner.y + below, width: across, pointerEvents: pinned ? "auto" : "none" }}>
      {children}
    </div>
  );
}
