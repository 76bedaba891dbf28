/** Before the click: starts now, or why not, with changes that would start it. */
import { Alert, Button, Spin } from "antd";
import type { ReactNode } from "react";
import { Trouble, useNow } from "@/look/parts";
import { Said } from "@/overview/Said";
import { useLanguage, useWords } from "@/words";
import { inWords } from "../expected";
import { jobWords } from "../words";
import { besideFields } from "./problems";
import type { Looked, Outlook } from "./useOutlook";

const cardWords = { atFields: ["See the fields marked in red.", "请查看标红的字段。"] } as const;

interface Props {
  looked: Looked;
  form: boolean; // where problems stand at their fields
  change: (changes: Record<string, string>) => void;
  children: ReactNode;
}

export function OutlookCard({ looked, form, change, children }: Props) {
  const say = useWords(jobWords);
  const atFields = useWords(cardWords);
  const { outlook, problems, trouble, looking, empty } = looked;
  const told = form ? besideFields(problems) : problems;
  return (
    <aside className="surface stack" aria-label={say("outlook")}>
      <div className="spread"><h2 style={{ margin: 0 }}>{say("outlook")}</h2>{looking && <Spin size="small" />}</div>
      <div className="stack" style={{ gap: 12 }} aria-live="polite">
        {empty && <p className="quiet" style={{ margin: 0 }}>{say("outlookEmpty")}</p>}
        {trouble !== null && <Trouble error={trouble} />}
        {problems.length > 0 && (
          <Alert
            type="error"
            showIcon
            title={say("outlookProblems")}
            description={told.length > 0 ? <ul className="why-list">{told.map((one) => <li key={one.message}>{one.message}</li>)}</ul> : atFields("atFields")}
          />
        )}
        {outlook && problems.length === 0 && <Told outlook={outlook} />}
        {outlook && outlook.remedies.length > 0 && <Offers outlook={outlook} change={change} />}
        {outlook?.warnings.map((text) => <Alert key={text} type="warning" title={<Said text={text} />} />)}
        {!empty && !outlook && problems.length === 0 && trouble === null && <p className="quiet" style={{ margin: 0 }}>{say("outlookLooking")}</p>}
      </div>
      {children}
    </aside>
  );
}

function Told({ outlook }: { outlook: Outlook }) {
  const say = useWords(jobWords);
  const { language } = useLanguage();
  const starts = inWords(outlook.expected_start, useNow(), language, say);
  if (outlook.starts) return <Alert type="success" showIcon title={say("outlookStarts", { nodes: outlook.nodes.join(", ") })} />;
  return (
    <Alert
      type={outlook.never ? "error" : "warning"}
      showIcon
      title={say(outlook.never ? "outlookNever" : "outlookWaits")}
      description={<><Said text={outlook.reason} />{outlook.position > 0 && !outlook.never && <> {say("outlookBehind", { n: outlook.position })}</>}{starts && <p style={{ margin: "8px 0 0" }}>{say("expectedStart")}: {starts}</p>}</>}
    />
  );
}

function Offers({ outlook, change }: { outlook: Outlook; change: (changes: Record<string, string>) => void }) {
  const say = useWords(jobWords);
  return (
    <div>
      <strong>{say("offers")}</strong>
      {outlook.remedies.map((offer) => (
        <div key={offer.words} className="offer">
          <span>{offer.words}</span>
          <Button size="small" aria-label={`${say("change")}: ${offer.words}`} onClick={() => change(offer.changes)}>{say("change")}</Button>
        </div>
      ))}
    </div>
  );
}
