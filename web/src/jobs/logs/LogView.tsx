/** A log to scroll through: only the lines in sight are drawn. */
import { type RefObject, useEffect, useLayoutEffect, useState, useSyncExternalStore } from "react";
import { bytes } from "@/look/parts";
import { useWords } from "@/words";
import { jobWords } from "../words";
import { PLAIN, type Span, spans } from "./ansi";
import type { LogFeed } from "./feed";
import { overwritten } from "./lines";
import { LogLine } from "./LogLine";
import "./logs.css";

export const LINE_PX = 20;
const SPARE_LINES = 12; // drawn above and below what is in sight
const NEAR_LINES = 400; // so near to an end what follows there is read
const LOOK_BACK = 100; // lines, for a colour that was begun there

interface Shown {
  line: number;
  spans: Span[];
  gap: number | null;
}

/** The lines in sight. A colour may have been begun some lines before. */
function inSight(feed: LogFeed, first: number, last: number): Shown[] {
  const { window } = feed;
  const raw = (line: number) => overwritten(window.line(line));
  let style = PLAIN;
  for (let back = first - 1; back >= Math.max(0, first - LOOK_BACK); back -= 1) {
    const text = raw(back);
    if (!text.includes("\x1b[")) continue;
    style = spans(text).end;
    break;
  }
  const shown: Shown[] = [];
  for (let line = first; line < last; line += 1) {
    const told = spans(raw(line), style);
    style = told.end;
    shown.push({ line, spans: told.spans, gap: window.gapAt(line) });
  }
  return shown;
}

interface Props {
  feed: LogFeed;
  box: RefObject<HTMLDivElement | null>;
  wanted: string;
  here: number | null;
  label: string;
}

export function LogView({ feed, box, wanted, here, label }: Props) {
  const say = useWords(jobWords);
  const version = useSyncExternalStore(feed.subscribe, feed.snapshot);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const { count } = feed.window;

  useLayoutEffect(() => {
    const view = box.current;
    if (!view) return;
    // What came in above, or left, moves the view along, so that the lines one reads stay where they are.
    const moved = feed.shifts.splice(0).reduce((sum, shift) => sum + shift.lines, 0);
    if (feed.following) view.scrollTo({ top: view.scrollHeight });
    else if (moved !== 0) view.scrollBy({ top: moved * LINE_PX });
    setTop(view.scrollTop);
    // oxlint-disable-next-line react/exhaustive-effect-dependencies -- after everything that came in
  }, [feed, box, version]);

  useEffect(() => {
    const view = box.current;
    if (!view) return undefined;
    const sized = new ResizeObserver(() => setHeight(view.clientHeight));
    sized.observe(view);
    return () => sized.disconnect();
  }, [box]);

  const scrolled = () => {
    const view = box.current;
    if (!view) return;
    const before = top;
    setTop(view.scrollTop);
    const below = view.scrollHeight - view.scrollTop - view.clientHeight;
    if (view.scrollTop < before - 2 && below > LINE_PX) feed.follow(false);
    else if (below < 4 && feed.live) feed.follow(true);
    if (view.scrollTop < NEAR_LINES * LINE_PX && !feed.following && !feed.reachesStart) void feed.older();
    if (below < NEAR_LINES * LINE_PX && !feed.live && !feed.following) void feed.newer();
  };

  const first = Math.max(0, Math.min(count, Math.floor(top / LINE_PX) - SPARE_LINES));
  const last = Math.min(count, Math.ceil((top + height) / LINE_PX) + SPARE_LINES);
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls has to be reachable by keyboard
    <div ref={box} className="log mono" role="log" aria-live="off" aria-label={label} tabIndex={0} onScroll={scrolled}>
      <div className="log-space" style={{ height: count * LINE_PX }}>
        <div className="log-lines" style={{ transform: `translateY(${first * LINE_PX}px)` }}>
          {inSight(feed, first, last).map(({ line, spans: found, gap }) =>
            gap === null ? (
              <LogLine key={line} spans={found} wanted={wanted} here={line === here} />
            ) : (
              <div key={line} className="log-line log-gap">{say("gap", { size: bytes(gap) })}</div>
            ),
          )}
        </div>
      </div>
    </div>
  );
}
