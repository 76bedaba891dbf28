/** Where the cards' time went: all of it in one waterfall, then by day, node or model. */
import { useQuery } from "@tanstack/react-query";
import { Segmented, Skeleton } from "antd";
import type { CSSProperties } from "react";
import { useSearchParams } from "react-router-dom";
import { api, asked, type Schemas } from "@/api/client";
import { Nothing, PageHead, Trouble } from "@/look/parts";
import { ScrollBox } from "@/overview/ScrollBox";
import { useLanguage, useWords } from "@/words";
import "./ledger.css";
import { cardHours, percent, type Step, shareOf, stacked, waterfall } from "./waterfall";
import { ledgerWords } from "./words";

type Ledger = Schemas["LedgerOut"];
type By = Schemas["By"];

const PERIODS = { day: 1, week: 7, month: 30 } as const;
type Period = keyof typeof PERIODS;
const BYS = { day: "byDay", node: "byNode", model: "byModel" } as const;
const AGAIN_MS = 30_000; // it moves by the second, and is no news

const tone = (bucket: Step["bucket"]) => ({ "--tone": `var(--ledger-${bucket})` }) as CSSProperties;

function useChoice<Key extends string>(name: string, known: Readonly<Record<Key, unknown>>, usual: Key): [Key, (wish: Key) => void] {
  const [params, setParams] = useSearchParams();
  const told = params.get(name);
  const chosen = told !== null && told in known ? (told as Key) : usual;
  return [chosen, (wish) => setParams((before) => ({ ...Object.fromEntries(before), [name]: wish }), { replace: true })];
}

export default function LedgerPage() {
  const say = useWords(ledgerWords);
  const [period, setPeriod] = useChoice<Period>("period", PERIODS, "week");
  const [by, setBy] = useChoice<By>("by", BYS, "day");
  const { data, error, refetch } = useQuery({
    queryKey: ["ledger", period, by],
    queryFn: () => {
      const since = new Date(Date.now() - PERIODS[period] * 86_400_000).toISOString();
      return asked(api.GET("/api/v1/ledger", { params: { query: { since, by } } }));
    },
    placeholderData: (before) => before,
    refetchInterval: AGAIN_MS,
  });
  return (
    <div className="page stack">
      <PageHead title={say("title")}>
        <Segmented
          aria-label={say("period")}
          value={period}
          onChange={setPeriod}
          options={(Object.keys(PERIODS) as Period[]).map((value) => ({ value, label: say(value) }))}
        />
      </PageHead>
      {error && <Trouble error={error} again={() => void refetch()} />}
      {!data && !error && <Skeleton active />}
      {data && data.total.capacity === 0 && <Nothing title={say("none")}><span className="quiet">{say("noneHow")}</span></Nothing>}
      {data && data.total.capacity > 0 && <Waterfall ledger={data} />}
      {data && data.total.capacity > 0 && <Apart ledger={data} by={by} choose={setBy} />}
    </div>
  );
}

function useMoment(): (text: string) => string {
  const { language } = useLanguage();
  const format = new Intl.DateTimeFormat(language === "zh" ? "zh-CN" : "en-GB", { dateStyle: "medium", timeStyle: "short" });
  return (text) => format.format(new Date(text));
}

function Waterfall({ ledger }: { ledger: Ledger }) {
  const say = useWords(ledgerWords);
  const { language } = useLanguage();
  const moment = useMoment();
  const { total } = ledger;
  const facts = { since: moment(ledger.since), until: moment(ledger.until), hours: cardHours(total.capacity, language) };
  return (
    <section className="surface" aria-labelledby="waterfall-head" style={{ minWidth: 0 }}>
      <h2 id="waterfall-head">{say("waterfall")}</h2>
      <p style={{ margin: "0 0 12px" }}>
        <strong>{say("summary", { percent: percent(shareOf(total, "used")) })}</strong> <span className="quiet">{say("covered", facts)}</span>
      </p>
      <table className="ledger-table ledger-waterfall" aria-labelledby="waterfall-head">
        <thead>
          <tr>
            <th scope="col">{say("bucket")}</th>
            <th scope="col" className="number">{say("hours")}</th>
            <th scope="col" className="number">{say("share")}</th>
            <th scope="col">{say("drawn")}</th>
          </tr>
        </thead>
        <tbody>{waterfall(total).map((step) => <Line key={step.bucket} step={step} />)}</tbody>
      </table>
      {total.untold > 0 && <p className="quiet" style={{ margin: "12px 0 0" }}>{say("untold", { percent: percent(total.untold / (total.buckets.used ?? total.untold)) })}</p>}
    </section>
  );
}

function Line({ step }: { step: Step }) {
  const say = useWords(ledgerWords);
  const { language } = useLanguage();
  return (
    <tr data-bucket={step.bucket}>
      <th scope="row">
        <span className="ledger-what" style={tone(step.bucket)}>{say(step.bucket)}</span>
        {step.bucket !== "capacity" && <div className="ledger-why">{say(`${step.bucket}Is`)}</div>}
      </th>
      <td className="number">{cardHours(step.amount, language)}</td>
      <td className="number">{percent(step.share)}</td>
      <td className="ledger-drawn"><Bar steps={[step]} /></td>
    </tr>
  );
}

/** Only drawn: what it shows stands beside it in numbers. */
function Bar({ steps }: { steps: readonly Step[] }) {
  return (
    <div className="ledger-bar" aria-hidden="true">
      {steps.filter(({ amount }) => amount > 0).map(({ bucket, from, share }) => (
        <span key={bucket} className="thin" style={{ insetInlineStart: `${from * 100}%`, width: `${share * 100}%`, background: `var(--ledger-${bucket})` }} />
      ))}
    </div>
  );
}

function Apart({ ledger, by, choose }: { ledger: Ledger; by: By; choose: (by: By) => void }) {
  const say = useWords(ledgerWords);
  const { language } = useLanguage();
  const options = (Object.keys(BYS) as By[]).map((value) => ({ value, label: say(BYS[value]) }));
  return (
    <section className="surface" aria-labelledby="apart-head" style={{ minWidth: 0 }}>
      <div className="spread" style={{ marginBottom: 12 }}>
        <h2 id="apart-head" style={{ margin: 0 }}>{say("apart")}</h2>
        <Segmented aria-label={say("apartBy")} value={by} onChange={choose} options={options} />
      </div>
      <ul className="ledger-legend">
        {stacked(ledger.total).map(({ bucket }) => <li key={bucket} style={tone(bucket)}>{say(bucket)}</li>)}
      </ul>
      <ScrollBox labelledBy="apart-head" style={{ maxHeight: 480, overflow: "auto" }}>
        <table className="ledger-table ledger-apart" aria-labelledby="apart-head">
          <thead>
            <tr>
              <th scope="col">{say(BYS[ledger.by])}</th>
              <th scope="col" className="number">{say("hours")}</th>
              <th scope="col" className="number">{say("used")}</th>
              <th scope="col">{say("split")}</th>
            </tr>
          </thead>
          <tbody>
            {ledger.items.map((line) => (
              <tr key={line.name} data-line={line.name}>
                <th scope="row">{line.name}</th>
                <td className="number">{cardHours(line.capacity, language)}</td>
                <td className="number">{percent(shareOf(line, "used"))}</td>
                <td className="ledger-drawn"><Bar steps={stacked(line)} /></td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollBox>
      {ledger.by === "day" && <p className="quiet" style={{ margin: "8px 0 0" }}>{say("daysAre")}</p>}
    </section>
  );
}
