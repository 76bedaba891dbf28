/** One line of a log: text and colours, nothing else. What was looked for is marked. */
import { type CSSProperties, memo, type ReactNode } from "react";
import type { Span, Style } from "./ansi";
import { LONGEST_SHOWN } from "./lines";

function looks({ fg, bg, bold, faint, italic, underline, inverse }: Style): CSSProperties | undefined {
  if (!fg && !bg && !bold && !faint && !italic && !underline && !inverse) return undefined;
  const [ink, ground] = inverse ? [bg ?? "var(--surface)", fg ?? "var(--text)"] : [fg, bg];
  return {
    color: ink,
    background: ground,
    fontWeight: bold ? 650 : undefined,
    opacity: faint ? 0.8 : undefined,
    fontStyle: italic ? "italic" : undefined,
    textDecoration: underline ? "underline" : undefined,
  };
}

function marked(text: string, wanted: string): ReactNode {
  if (!wanted) return text;
  const low = text.toLowerCase();
  const parts: ReactNode[] = [];
  let last = 0;
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, at + wanted.length)) {
    parts.push(text.slice(last, at), <mark key={at}>{text.slice(at, at + wanted.length)}</mark>);
    last = at + wanted.length;
  }
  return [...parts, text.slice(last)];
}

function shortened(spans: readonly Span[]): Span[] {
  let left = LONGEST_SHOWN;
  return spans.flatMap((span) => {
    const text = span.text.slice(0, Math.max(0, left));
    left -= span.text.length;
    return text ? [{ ...span, text: left < 0 ? `${text}…` : text }] : [];
  });
}

interface Props {
  spans: readonly Span[];
  wanted: string;
  here: boolean;
}

export const LogLine = memo(function LogLine({ spans, wanted, here }: Props) {
  const shown = shortened(spans);
  return (
    <div className={here ? "log-line here" : "log-line"} aria-current={here || undefined}>
      {/* oxlint-disable-next-line react/no-array-index-key -- spans have nothing but their place */}
      {shown.map((span, at) => <span key={at} style={looks(span.style)}>{marked(span.text, wanted)}</span>)}
    </div>
  );
});
