/** For addresses without a page, and pages that failed. */
import { Button } from "antd";
import { Link } from "react-router-dom";
import { useWords } from "@/words";
import { Nothing } from "./parts";
import { lookWords } from "./words";

export function NotFoundPage() {
  const say = useWords(lookWords);
  return <div className="page"><Nothing title={say("notFound")}><Link to="/">{say("home")}</Link></Nothing></div>;
}

export function BrokenPage() {
  const say = useWords(lookWords);
  return (
    <div className="page">
      <Nothing title={say("broken")}><Button onClick={() => location.reload()}>{say("reload")}</Button></Nothing>
    </div>
  );
}
