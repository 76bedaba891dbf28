/** Its story, the newest line first. */
import { useQuery } from "@tanstack/react-query";
import { api, asked } from "@/api/client";
import { keys } from "@/api/news";
import { Moment, StateMark, Trouble } from "@/look/parts";
import { Said } from "@/overview/Said";
import { useLanguage, useWords } from "@/words";
import { jobWords } from "../words";
import type { Detail } from "./useJob";

export default function StoryTab({ job }: { job: Detail }) {
  const say = useWords(jobWords);
  const { language } = useLanguage();
  const { data, error, refetch } = useQuery({
    queryKey: keys.workload(job.id, "events", language),
    queryFn: () => asked(api.GET("/api/v1/workloads/{ref}/events", { params: { path: { ref: job.id } } })),
  });
  if (error && !data) return <Trouble error={error} again={() => void refetch()} />;
  const events = data?.items.toReversed() ?? [];
  return (
    <section className="surface" aria-busy={!data}>
      <ol className="story" aria-label={say("tabStory")}>
        {events.map((event, at) => (
          // oxlint-disable-next-line react/no-array-index-key -- a story only grows; counted from its beginning
          <li key={events.length - at}>
            <p><Said text={event.message} /></p>
            <p className="quiet row" style={{ gap: 12 }}>
              <Moment at={event.at} />
              <StateMark state={event.state} />
              {event.attempt > 0 && <span>{say("tries", { n: event.attempt })}</span>}
              {event.by && <span>{say("by", { who: event.by })}</span>}
            </p>
          </li>
        ))}
      </ol>
    </section>
  );
}
