/** A terminal inside a running replica. */
import { InsideFrame } from "@/look/InsideFrame";
import { Nothing } from "@/look/parts";
import { useWords } from "@/words";
import { isRunning } from "../wishes";
import { jobWords } from "../words";
import type { Detail } from "./useJob";

export default function TerminalTab({ job }: { job: Detail }) {
  const say = useWords(jobWords);
  if (!isRunning(job)) return <Nothing title={say("terminalLater")} />;
  return <InsideFrame id={job.id} owner={job.owner} what="terminal" title={say("terminal")} />;
}
