/** Typical requests: how many more of each would fit, and how many free cards would be left over. */
import { ScrollBox } from "@/overview/ScrollBox";
import { useWords } from "@/words";
import { inCards, strandedShare, type Typical } from "./fragments";
import { fragmentWords } from "./fragmentWords";

export function FragmentsRequests({ requests, learned }: { requests: readonly Typical[]; learned: boolean }) {
  const say = useWords(fragmentWords);
  return (
    <section className="surface" aria-labelledby="fits-head" style={{ minWidth: 0 }}>
      <h2 id="fits-head">{say("fits")}</h2>
      {requests.length === 0 && <p className="quiet" style={{ margin: 0 }}>{say("noRequests")}</p>}
      {requests.length > 0 && <p className="quiet" style={{ margin: "0 0 12px" }}>{say(learned ? "fitsLearned" : "fitsNow")}</p>}
      {requests.length > 0 && <Requests requests={requests} />}
      {requests.length > 0 && <p className="quiet" style={{ margin: "12px 0 0" }}>{say("leftOverIs")}</p>}
    </section>
  );
}

function Requests({ requests }: { requests: readonly Typical[] }) {
  const say = useWords(fragmentWords);
  return (
    <ScrollBox labelledBy="fits-head" style={{ maxHeight: 480 }}>
      <table className="plain-table fits-table" aria-labelledby="fits-head">
        <thead>
          <tr>
            <th scope="col">{say("request")}</th>
            <th scope="col" className="number fits-wide">{say("often")}</th>
            <th scope="col" className="number">{say("fit")}</th>
            <th scope="col" className="number fits-wide">{say("freeForIt")}</th>
            <th scope="col" className="number">{say("leftOver")}</th>
            <th scope="col" className="fits-wide">{say("drawn")}</th>
          </tr>
        </thead>
        <tbody>{requests.map((one) => <Line key={JSON.stringify([one.device, one.cards, one.models, one.cpu])} one={one} />)}</tbody>
      </table>
    </ScrollBox>
  );
}

function Line({ one }: { one: Typical }) {
  const say = useWords(fragmentWords);
  const which = one.models.join(" / ") || one.device;
  return (
    <tr data-request={`${one.cards} ${which}`}>
      <th scope="row">
        {say("cardsOf", { n: one.cards, device: which })}
        {one.cpu !== null && <span className="quiet"> · {say("cores", { n: one.cpu })}</span>}
      </th>
      <td className="number fits-wide">{Math.max(1, Math.round(one.share * 100))} %</td>
      <td className={`number ${one.fit === 0 ? "state-warn" : ""}`}><strong>{one.fit}</strong></td>
      <td className="number fits-wide">{inCards(one.free)}</td>
      <td className="number">{inCards(one.stranded)}</td>
      <td className="fits-wide fits-drawn"><Split one={one} /></td>
    </tr>
  );
}

/** Only drawn: what it shows stands beside it in numbers. */
function Split({ one }: { one: Typical }) {
  if (one.free === 0) return null;
  const stranded = strandedShare(one) * 100;
  return <div className="fits-bar" aria-hidden="true"><i style={{ width: `${100 - stranded}%` }} /><i className="stranded" style={{ width: `${stranded}%` }} /></div>;
}
