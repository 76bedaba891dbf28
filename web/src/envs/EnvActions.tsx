/** What can be done with an environment; what cannot now is not offered, what loses something asks first. */
import { DeleteOutlined, PlayCircleOutlined, PoweroffOutlined, ReloadOutlined } from "@ant-design/icons";
import { Button } from "antd";
import { useState } from "react";
import { useNavigate } from "react-router-dom";
import { slow, useConfirm } from "@/look/parts";
import { useWords } from "@/words";
import { type Env, isStopped, useWishes } from "./asking";
import { StartDialog } from "./StartDialog";
import { envWords } from "./words";

export function EnvActions({ env, small = false }: { env: Env; small?: boolean }) {
  const say = useWords(envWords);
  const confirm = useConfirm();
  const navigate = useNavigate();
  const { start, stop, remove, restart } = useWishes(env);
  const [asking, setAsking] = useState<"start" | "restart" | null>(null);
  const name = env.name;
  const stopped = isStopped(env);
  const restarts = env.restarting || restart.isPending;
  const ends = env.wanted !== "run" && !stopped && !env.restarting;
  const askStop = async () => {
    if (env.state === "queued" || (await confirm({ title: say("stopTitle", { name }), lost: say("stopLost"), ok: say("stop") }))) stop.mutate();
  };
  const askRemove = async () => {
    if (!(await confirm({ title: say("removeTitle", { name }), lost: say("removeLost"), ok: say("remove") }))) return;
    if (!small) void navigate("/envs"); // first: what is removed must not be asked for again
    remove.mutate();
  };
  const size = small ? "small" : "middle";
  const again = (changes: Record<string, unknown>) => {
    const wish = asking === "start" ? start : restart;
    wish.mutate(changes);
    setAsking(null);
  };
  return (
    <span className="row" style={{ flexWrap: small ? "nowrap" : "wrap" }}>
      {stopped ? (
        <Button size={size} type={small ? "default" : "primary"} icon={<PlayCircleOutlined />} loading={slow(start.isPending)} onClick={() => setAsking("start")}>{say("start")}</Button>
      ) : (
        <Button size={size} icon={<PoweroffOutlined />} loading={slow(stop.isPending || ends)} onClick={() => void askStop()}>{say("stop")}</Button>
      )}
      {!small && !stopped && <Button icon={<ReloadOutlined />} loading={slow(restarts)} disabled={ends} onClick={() => setAsking("restart")}>{say("restart")}</Button>}
      <Button size={size} danger icon={<DeleteOutlined />} loading={slow(remove.isPending)} onClick={() => void askRemove()} aria-label={small ? `${say("remove")}: ${name}` : undefined}>
        {small ? null : say("remove")}
      </Button>
      {asking && <StartDialog env={env} verb={asking} onDone={again} onLeave={() => setAsking(null)} />}
    </span>
  );
}
