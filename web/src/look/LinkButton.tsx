/** A link that looks like a button: it leads somewhere, so it can be opened in another tab. */
import { Button, type ButtonProps } from "antd";
import { useHref, useLinkClickHandler } from "react-router-dom";

export function LinkButton({ to, ...rest }: { to: string } & Omit<ButtonProps, "href" | "onClick">) {
  const href = useHref(to);
  const go = useLinkClickHandler<HTMLElement>(to);
  return <Button {...rest} href={href} onClick={(event) => go(event as React.MouseEvent<HTMLAnchorElement>)} />;
}
