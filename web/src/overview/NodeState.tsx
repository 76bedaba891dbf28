/** How a machine is, in words and colour. */
import { useWords } from "@/words";
import { overviewWords } from "./words";

const TONES: Record<string, string> = { ready: "good", cordoned: "warn", lost: "bad", disk_full: "bad" };

export function NodeState({ state }: { state: string }) {
  const say = useWords(overviewWords);
  const key = `state${state}` as keyof typeof overviewWords;
  return <span className={`state state-${TONES[state] ?? "idle"}`}>{key in overviewWords ? say(key) : state}</span>;
}
