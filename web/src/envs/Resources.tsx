/** What an environment asks for, in a few words. */
import { Tag } from "antd";
import { bytes } from "@/look/parts";
import { useWords } from "@/words";
import type { Env } from "./asking";
import { envWords } from "./words";

type Asked = Pick<Env, "cards" | "device" | "cpu" | "memory" | "simulated_cards">;

export function Resources({ env }: { env: Asked }) {
  const say = useWords(envWords);
  const cards = env.cards === 0 ? say("noCard") : env.cards === 1 ? say("cardShort") : say("cardsShort", { n: env.cards });
  const parts = [env.device && env.cards ? `${cards} (${env.device})` : cards];
  parts.push(env.cpu === null ? say("fair") : say("cores", { n: env.cpu }));
  if (env.memory !== null) parts.push(bytes(env.memory));
  return (
    <span>
      {parts.join(" · ")} {env.simulated_cards && <Tag>{say("simulated")}</Tag>}
    </span>
  );
}
