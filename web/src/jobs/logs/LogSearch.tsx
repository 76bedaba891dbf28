/** Looks for text: in what is held at once, further on with a word on how far it is. */
import { DownOutlined, UpOutlined } from "@ant-design/icons";
import { Button, Input, Tooltip } from "antd";
import { type RefObject, useRef, useState } from "react";
import { useTell } from "@/look/parts";
import { useWords } from "@/words";
import { jobWords } from "../words";
import type { LogFeed } from "./feed";
import { beyond, type Direction, first, inWindow } from "./finding";
import { LINE_PX } from "./LogView";

const searchWords = {
  nowhere: ["Not found.", "没有找到。"],
  round: ["From the first line on again.", "已回到开头继续。"],
  roundBack: ["From the last line back again.", "已回到末尾继续。"],
} as const;

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
  const [note, setNote] = useState<keyof typeof searchWords | null>(null);
  const sayNote = useWords(searchWords);
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

  const read = async (direction: Direction, look: (goes: (at: number) => boolean) => Promise<number | null>): Promise<number | null> => {
    going.current = true;
    const all = Math.max(1, feed.window.to);
    try {
      const byte = await look((at) => {
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

  const further = (direction: Direction) => read(direction, (goes) => beyond(feed, wanted, direction, goes));

  /** Past the end it goes on at the other one: whoever looks at the newest lines wants to find the older ones, too. */
  const round = (direction: Direction): number | null | Promise<number | null> => {
    if (direction === "previous") return inWindow(feed, wanted, feed.window.count, "previous");
    return feed.reachesStart ? inWindow(feed, wanted, -1, "next") : read("next", (goes) => first(feed, wanted, goes));
  };

  const find = async (direction: Direction) => {
    if (!wanted || going.current) return;
    setNote(null);
    const from = found.text === wanted && found.line !== null ? found.line : direction === "next" ? firstInSight(box.current) - 1 : lastInSight(box.current);
    try {
      const ahead = inWindow(feed, wanted, from, direction) ?? (await further(direction));
      const line = ahead ?? (await round(direction));
      if (ahead === null) setNote(line === null ? "nowhere" : direction === "next" ? "round" : "roundBack");
      if (line !== null) show(line);
    } catch (error) {
      tell(error);
    }
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
          setNote(null);
          onFound({ text: event.target.value.toLowerCase(), line: null });
        }}
        onKeyDown={(event) => event.key === "Enter" && void find(event.shiftKey ? "previous" : "next")}
        style={{ width: 200 }}
      />
      <Tooltip title={say("previous")}><Button icon={<UpOutlined />} aria-label={say("previous")} disabled={!wanted} onClick={() => void find("previous")} /></Tooltip>
      <Tooltip title={say("next")}><Button icon={<DownOutlined />} aria-label={say("next")} disabled={!wanted} onClick={() => void find("next")} /></Tooltip>
      <span aria-live="polite" className="quiet">
        {part !== null && <>{say("searching", { part })} <Button size="small" type="link" onClick={() => { going.current = false; }}>{say("cancel")}</Button></>}
        {note && sayNote(note)}
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
