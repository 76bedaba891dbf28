/** A list that scrolls inside its panel, by keyboard too. */
import type { CSSProperties, ReactNode } from "react";

export function ScrollBox({ labelledBy, style, children }: { labelledBy: string; style?: CSSProperties; children: ReactNode }) {
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by those without a mouse
    <div className="inner-scroll" role="region" tabIndex={0} aria-labelledby={labelledBy} style={style}>{children}</div>
  );
}
