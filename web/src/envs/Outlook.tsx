/** Before it is created: it starts now, or why not, with changes that would start it. */
import { Alert, Button } from "antd";
import type { Schemas } from "@/api/client";
import { Trouble } from "@/look/parts";
import { Said } from "@/overview/Said";
import { useWords } from "@/words";
import { envWords } from "./words";

export function Offers({ offers, label, onTake }: { offers: readonly Schemas["OfferOut"][]; label: string; onTake: (changes: Record<string, string>) => void }) {
  const say = useWords(envWords);
  if (offers.length === 0) return null;
  return (
    <div>
      <strong>{say("wouldStart")}</strong>
      {offers.map((offer) => (
        <div className="env-offer" key={offer.words}>
          <span>{offer.words}</span>
          <Button size="small" type="primary" ghost onClick={() => onTake(offer.changes)} aria-label={`${label}: ${offer.words}`}>{label}</Button>
        </div>
      ))}
    </div>
  );
}

interface Props {
  outlook: Schemas["PreviewOut"] | undefined;
  error: unknown;
  old: boolean;
  empty: boolean; // nothing to look at yet
  onTake: (changes: Record<string, string>) => void;
}

export function Outlook({ outlook, error, old, empty, onTake }: Props) {
  const say = useWords(envWords);
  return (
    <section className="surface stack env-outlook" aria-live="polite" aria-busy={old} aria-label={say("outlook")}>
      <h2 style={{ margin: 0 }}>{say("outlook")}</h2>
      {error ? <Trouble error={error} /> : outlook ? <Told outlook={outlook} onTake={onTake} /> : <span className="quiet">{say(empty ? "chooseImage" : "looking")}</span>}
    </section>
  );
}

function Told({ outlook, onTake }: Pick<Props, "onTake"> & { outlook: Schemas["PreviewOut"] }) {
  const say = useWords(envWords);
  const problem = outlook.problems[0]?.message;
  return (
    <>
      {problem ? (
        <Alert type="error" showIcon title={say("refused")} description={problem} />
      ) : outlook.starts ? (
        <Alert type="success" showIcon title={say("starts", { nodes: outlook.nodes.join(", ") })} />
      ) : (
        <Alert
          type={outlook.never ? "error" : "warning"}
          showIcon
          title={say(outlook.never ? "cannot" : "waits")}
          description={<><Said text={outlook.reason} />{outlook.position > 0 && <div>{say("position", { n: outlook.position })}</div>}</>}
        />
      )}
      {outlook.warnings.map((warning) => <Alert key={warning} type="info" showIcon title={<Said text={warning} />} />)}
      {!outlook.starts && <Offers offers={outlook.remedies} label={say("take")} onTake={onTake} />}
    </>
  );
}
