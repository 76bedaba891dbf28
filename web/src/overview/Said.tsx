/** A sentence of the server: commands set as such, moments by the reader's own clock, and the work it names by id linked by its
 * name, where one may see it. */
import { Fragment, type ReactNode } from "react";
import { Link } from "react-router-dom";
import { Moment, moment } from "@/look/parts";
import { workPath } from "./CardDetail";
import { useBoard } from "./useBoard";

const PARTS = /(`[^`]+`|\b[a-z0-9]{10}\b|\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC)/;
const MOMENT = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC$/;
const ID = /^[a-z0-9]{10}$/;

/** What is plain, and between it what is not. */
export const partsOf = (text: string): string[] => text.split(PARTS);

/** The moment a part is, as ISO 8601; empty where it is none. */
export function instant(part: string): string {
  const [, day, time] = MOMENT.exec(part) ?? [];
  const at = `${day}T${time}Z`;
  return day !== undefined && !Number.isNaN(Date.parse(at)) ? at : "";
}

/** The same as nothing but text, for rows and titles: moments by the reader's own clock. */
export const inPlain = (text: string | null | undefined, language: string): string =>
  partsOf(text ?? "").map((part) => (instant(part) ? moment(instant(part), language) : part)).join("");

export function Said({ text }: { text: string | null | undefined }) {
  const parts = partsOf(text ?? "");
  return parts.some((part) => ID.test(part)) ? <Naming parts={parts} /> : <>{shown(parts, () => undefined)}</>;
}

function Naming({ parts }: { parts: readonly string[] }) {
  const works = useBoard().data?.works;
  return (
    <>
      {shown(parts, (id) => {
        const work = works?.[id];
        return work?.name && <Link to={workPath(id, work.kind)} title={id}>{work.name}</Link>;
      })}
    </>
  );
}

function shown(parts: readonly string[], named: (id: string) => ReactNode): ReactNode[] {
  return parts.map((part, at) => {
    const told = part.startsWith("`") && part.length > 2 ? <code>{part.slice(1, -1)}</code> : ID.test(part) ? (named(part) ?? part) : instant(part) ? <Moment at={instant(part)} /> : part;
    // oxlint-disable-next-line react/no-array-index-key -- parts have nothing but their place
    return <Fragment key={at}>{told}</Fragment>;
  });
}
