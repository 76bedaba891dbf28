/** Small facts with their names, and plain tables. */
import type { ReactNode } from "react";

export function Facts({ items }: { items: readonly (readonly [name: string, value: ReactNode] | false | null | undefined)[] }) {
  return (
    <dl className="facts">
      {items.map((item) => item && <div key={item[0]}><dt>{item[0]}</dt><dd>{item[1]}</dd></div>)}
    </dl>
  );
}

export function PlainTable({ label, head, rows }: { label: string; head: readonly string[]; rows: readonly { key: string; cells: readonly ReactNode[] }[] }) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls has to be reachable by keyboard
    <div className="plain-scroll" role="region" tabIndex={0} aria-label={label}>
      <table className="plain-table">
        <thead><tr>{head.map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
        <tbody>
          {rows.map(({ key, cells }) => <tr key={key}>{cells.map((cell, at) => <td key={head[at]}>{cell}</td>)}</tr>)}
        </tbody>
      </table>
    </div>
  );
}
