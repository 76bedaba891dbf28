/** What can be done with a job. What cannot be done now is disabled, and says why. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { App, Button, Tooltip } from "antd";
import { useNavigate } from "react-router-dom";
import { keys } from "@/api/news";
import { LinkButton } from "@/look/LinkButton";
import { moment, slow, useConfirm, useTell } from "@/look/parts";
import { useLanguage, useWords } from "@/words";
import { can, carryOut, isRunning, type Verb } from "../wishes";
import { jobWords } from "../words";
import type { Detail } from "./useJob";

const VERBS: readonly Verb[] = ["stop", "pause", "resume", "rerun"];

/** What would be lost by ending its attempt now. */
function useLost(job: Detail): (verb: Verb) => string[] {
  const say = useWords(jobWords);
  const { language } = useLanguage();
  return (verb) => {
    const saved = job.attempts.at(-1)?.saved_at;
    const running = isRunning(job) && (saved ? say("lostSaved", { at: moment(saved, language) }) : say("lostOne"));
    const then = verb === "pause" ? say("pauseKeeps") : !isRunning(job) && say("lostPlace");
    return [running, then].filter((text): text is string => Boolean(text));
  };
}

export function JobActions({ job }: { job: Detail }) {
  const say = useWords(jobWords);
  const tell = useTell();
  const confirm = useConfirm();
  const lost = useLost(job);
  const client = useQueryClient();
  const navigate = useNavigate();
  const { message } = App.useApp();
  const act = useMutation({
    mutationFn: (verb: Verb) => carryOut(verb, job.id),
    onSuccess: (answer, verb) => {
      void client.invalidateQueries({ queryKey: keys.workload(job.id) });
      void client.invalidateQueries({ queryKey: keys.workloads() });
      if (verb !== "rerun") return;
      void message.success(say("rerunDone", { id: answer.id }));
      void navigate(`/jobs/${answer.id}`);
    },
    onError: tell,
  });
  const ask = async (verb: Verb) => {
    const title = say(verb === "stop" ? "stopAsk" : "pauseAsk", { what: job.name });
    const harmless = verb === "resume" || verb === "rerun";
    if (harmless || (await confirm({ title, ok: say(verb), lost: lost(verb).map((text) => <p key={text}>{text}</p>) }))) act.mutate(verb);
  };
  const share = async () => {
    await navigator.clipboard.writeText(location.href);
    void message.success(say("shared"));
  };
  return (
    <>
      {VERBS.filter((verb) => verb !== "resume" || can("resume", job)).map((verb) => (
        <Tooltip key={verb} title={can(verb, job) ? undefined : say(`cannot_${verb}`)}>
          <span>
            <Button danger={verb === "stop"} disabled={!can(verb, job)} loading={slow(act.isPending && act.variables === verb)} onClick={() => void ask(verb)}>{say(verb)}</Button>
          </span>
        </Tooltip>
      ))}
      <LinkButton to={`/jobs/new?from=${job.id}`}>{say("clone")}</LinkButton>
      <Button onClick={() => void share()}>{say("share")}</Button>
    </>
  );
}
