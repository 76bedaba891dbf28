/** "Why did that one run before mine?", answered with the rule and its numbers. */
import { useMutation } from "@tanstack/react-query";
import { Alert, Button, Input } from "antd";
import { useState } from "react";
import { api, asked } from "@/api/client";
import { slow, Trouble } from "@/look/parts";
import { Said } from "@/overview/Said";
import { useWords } from "@/words";
import { jobWords } from "../words";
import type { Detail } from "./useJob";

export function BeforeAsked({ job }: { job: Detail }) {
  const say = useWords(jobWords);
  const [other, setOther] = useState("");
  const ask = useMutation({
    mutationFn: (ref: string) => asked(api.GET("/api/v1/workloads/{ref}/before/{other}", { params: { path: { ref, other: job.id } } })),
  });
  const title = ask.data && say(ask.data.as_asked ? "beforeSo" : "beforeReversed", { first: ask.data.first, other: ask.data.other });
  return (
    <section className="surface">
      <h2>{say("beforeTitle")}</h2>
      <form
        className="row"
        onSubmit={(event) => {
          event.preventDefault();
          if (other.trim()) ask.mutate(other.trim());
        }}
      >
        <Input aria-label={say("beforeWhich")} placeholder={say("beforeWhich")} value={other} onChange={(event) => setOther(event.target.value)} style={{ width: 280, maxWidth: "100%" }} />
        <Button htmlType="submit" loading={slow(ask.isPending)} disabled={!other.trim()}>{say("beforeAsk")}</Button>
      </form>
      <div aria-live="polite" style={{ marginTop: 12 }}>
        {ask.error && <Trouble error={ask.error} />}
        {ask.data && <Alert type="info" showIcon title={title} description={<Said text={ask.data.rule.words} />} />}
      </div>
    </section>
  );
}
