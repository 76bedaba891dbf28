/** Looks for text: in what is held at once, further on with a word on how far it is. */
import { DownOutlined, UpOutlined } from "@ant-design/icons";
import { Button, Input, Tooltip } from "antd";
import { type RefObject, useRef, useState } from "react";
import { useTell } from "@/look/parts";
import { useWords } from "@/words";
import { jobWords } from "../words";
import type { LogFeed } from "./feed";
import { beyond, type Direction, inWindow } from "./finding";
import { LINE_PX } from "./LogView";

interface Found {
  text: string;
  line: number | null;
}

interface Props {
  feed: LogFeed;
  box: RefObject<HTMLDivElement | null>;
  found: Found;
  onFound: (found: Found) => void;
}

export function LogSearch({ feed, box, found, onFound }: Props) {
  const say = useWords(jobWords);
  const tell = useTell();
  const [text, setText] = useState("");
  const [part, setPart] = useState<number | null>(null);
  const [nothing, setNothing] = useState(false);
  const going = useRef(false);
  const wanted = text.toLowerCase();

  const show = (line: number) => {
    feed.follow(false);
    onFound({ text: wanted, line });
    // After the view has taken in what may have been read for it.
    requestAnimationFrame(() => {
      const view = box.current;
      view?.scrollTo({ top: Math.max(0, line * LINE_PX - view.clientHeight / 2) });
    });
  };

  const further = async (direction: Direction): Promise<number | null> => {
    going.current = true;
    const all = Math.max(1, feed.window.to);
    try {
      const byte = await beyond(feed, wanted, direction, (at) => {
        setPart(Math.round((100 * (direction === "next" ? at : all - at)) / Math.max(all, at)));
        return going.current;
      });
      if (byte === null) return null;
      await feed.goTo(byte);
      const start = feed.window.pieces[0]?.from ?? 0;
      const before = inWindow(feed, wanted, lineOfByte(feed, byte - start) - 1, "next");
      return before;
    } finally {
      going.current = false;
      setPart(null);
    }
  };

  const find = async (direction: Direction) => {
    if (!wanted || going.current) return;
    setNothing(false);
    const from = found.text === wanted && found.line !== null ? found.line : direction === "next" ? firstInSight(box.current) - 1 : lastInSight(box.current);
    const line = inWindow(feed, wanted, from, direction) ?? (await further(direction).catch((error: unknown) => (tell(error), null)));
    if (line === null) setNothing(true);
    else show(line);
  };

  return (
    <div className="row" role="search" style={{ gap: 4 }}>
      <Input
        allowClear
        aria-label={say("findInLog")}
        placeholder={say("findInLog")}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setNothing(false);
          onFound({ text: event.target.value.toLowerCase(), line: null });
        }}
        onKeyDown={(event) => event.key === "Enter" && void find(event.shiftKey ? "previous" : "next")}
        style={{ width: 200 }}
      />
      <Tooltip title={say("previous")}><Button icon={<UpOutlined />} aria-label={say("previous")} disabled={!wanted} onClick={() => void find("previous")} /></Tooltip>
      <Tooltip title={say("next")}><Button icon={<DownOutlined />} aria-label={say("next")} disabled={!wanted} onClick={() => void find("next")} /></Tooltip>
      <span aria-live="polite" className="quiet">
        {part !== null && <>{say("searching", { part })} <Button size="small" type="link" onClick={() => { going.current = false; }}>{say("cancel")}</Button></>}
        {nothing && say("noMatch")}
      </span>
    </div>
  );
}

const firstInSight = (view: HTMLDivElement | null): number => Math.floor((view?.scrollTop ?? 0) / LINE_PX);
const lastInSight = (view: HTMLDivElement | null): number => Math.ceil(((view?.scrollTop ?? 0) + (view?.clientHeight ?? 0)) / LINE_PX);

/** The line that begins at or after so many bytes of the held stretch. */
function lineOfByte(feed: LogFeed, bytes: number): number {
  const encoder = new TextEncoder();
  let at = 0;
  for (let line = 0; line < feed.window.count; line += 1) {
    if (at >= bytes) return line;
    at += encoder.encode(feed.window.line(line)).length + 1;
  }
  return feed.window.count;
}
