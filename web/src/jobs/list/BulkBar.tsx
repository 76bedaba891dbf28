/** What can be asked of all selected jobs at once. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { App, Button, Tooltip } from "antd";
import { keys } from "@/api/news";
import { slow, troubleWords, useConfirm } from "@/look/parts";
import { lookWords } from "@/look/words";
import { useWords } from "@/words";
import { can, carryOut, forAll, isRunning, type Job, type Verb } from "../wishes";
import { jobWords } from "../words";

const VERBS: readonly Verb[] = ["stop", "pause", "resume", "rerun"];

export function BulkBar({ jobs, clear }: { jobs: Job[]; clear: () => void }) {
  const say = useWords(jobWords);
  const frame = useWords(lookWords);
  const client = useQueryClient();
  const confirm = useConfirm();
  const { message } = App.useApp();
  const act = useMutation({
    mutationFn: async ({ verb, ids }: { verb: Verb; ids: string[] }) => ({ all: ids.length, refused: await forAll(ids, (id) => carryOut(verb, id)) }),
    onSuccess: ({ all, refused }) => {
      if (refused.length === 0) void message.success(say("doneAll", { n: all }));
      else void message.warning(say("doneSome", { n: refused.length, all, why: troubleWords(refused[0], frame("unreachable")) }), 8);
      clear();
      void client.invalidateQueries({ queryKey: keys.workloads() });
    },
  });
  const ask = async (verb: Verb, able: Job[]) => {
    const running = able.filter(isRunning).length;
    const what = say("jobsCounted", { n: able.length });
    const lost = [running > 0 && say("lostRunning", { n: running }), verb === "stop" ? say("lostPlaces") : say("pauseKeeps")];
    const meant =
      (verb !== "stop" && verb !== "pause") ||
      (await confirm({ title: say(verb === "stop" ? "stopAsk" : "pauseAsk", { what }), ok: say(verb), lost: lost.filter(Boolean).map((text) => <p key={String(text)}>{text}</p>) }));
    if (meant) act.mutate({ verb, ids: able.map((job) => job.id) });
  };
  return (
    <div className="surface jobs-bulk spread" role="toolbar" aria-label={say("selected", { n: jobs.length })}>
      <span className="row">
        <strong aria-live="polite">{say("selected", { n: jobs.length })}</strong>
        <Button type="link" size="small" onClick={clear}>{say("unselect")}</Button>
      </span>
      <span className="row">
        {VERBS.map((verb) => {
          const able = jobs.filter((job) => can(verb, job));
          return (
            <Tooltip key={verb} title={able.length === 0 ? say("noneOfThem") : undefined}>
              <span>
                <Button danger={verb === "stop"} disabled={able.length === 0} loading={slow(act.isPending && act.variables.verb === verb)} onClick={() => void ask(verb, able)}>{say(verb)}</Button>
              </span>
            </Tooltip>
          );
        })}
      </span>
    </div>
  );
}
