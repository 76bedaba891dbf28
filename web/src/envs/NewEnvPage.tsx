/** A new environment: asked for with what fits in sight, and with what will happen beside it. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Button, Form, Tag } from "antd";
import { useEffect, useState } from "react";
import { useNavigate } from "react-router-dom";
import { api, asked, Refusal, Unreachable } from "@/api/client";
import { keys, useWhenBack } from "@/api/news";
import { PageHead, slow, Trouble } from "@/look/parts";
import { useSession } from "@/session/session";
import { useLanguage, useWords } from "@/words";
import { useMachines } from "./asking";
import { bodyOf, type Draft, EMPTY, limitsOf, NAME_RULE, troublesAt, withOffer } from "./draft";
import { ImageField, NameField, PlaceFields, TimeFields } from "./EnvFields";
import "./envs.css";
import { Outlook } from "./Outlook";
import { envWords } from "./words";

const PAUSE_MS = 300;
const AGAIN_MS = 10_000;

/** What is typed, once nobody has typed for a moment. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}

/** `usesImages`: without one there is nothing to look at yet. */
function useOutlook(draft: Draft, usesImages: boolean) {
  const { language } = useLanguage();
  const body = useSettled(JSON.stringify(bodyOf({ ...draft, timer: "off" }, false)));
  const ready = !usesImages || "image" in (JSON.parse(body) as object);
  return useQuery({
    queryKey: ["env-outlook", body, language],
    queryFn: () => asked(api.POST("/api/v1/envs/preview", { params: { query: { remedies: true } }, body: JSON.parse(body) })),
    placeholderData: (before) => before,
    refetchInterval: AGAIN_MS,
    enabled: ready,
  });
}

function useCreate(draft: Draft) {
  const client = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: () => asked(api.POST("/api/v1/envs", { body: bodyOf(draft) as never })),
    onSuccess: async (made) => {
      await client.invalidateQueries({ queryKey: keys.envs });
      await navigate(`/envs/${made.name}`);
    },
  });
}

export default function NewEnvPage() {
  const say = useWords(envWords);
  const { who } = useSession();
  const groups = who.user.memberships.map((one) => one.group);
  const [draft, setDraft] = useState<Draft>({ ...EMPTY, group: groups.length > 1 ? (groups[0] ?? "") : "" });
  const [tried, setTried] = useState(false);
  const machines = useMachines();
  const limits = limitsOf(machines.data?.items ?? [], draft.device);
  const usesImages = who.engine === "container";
  const outlook = useOutlook(draft, usesImages);
  const create = useCreate(draft);
  useWhenBack(() => {
    if (create.error instanceof Unreachable) create.reset();
  });
  const change = (wish: Partial<Draft>) => {
    create.reset();
    setDraft({ ...draft, ...wish });
  };
  const told = troublesAt(create.error);
  const named = NAME_RULE.test(draft.name);
  const troubles = { ...(tried && !named ? { name: say("nameRule") } : {}), ...(tried && usesImages && !draft.image ? { image: say("imageMissing") } : {}), ...told };
  const atFields = ["name", "image", "group", "cards", "device", "cpu", "memory", "idle", "timer"];
  const elsewhere = create.error && !Object.keys(told).some((at) => atFields.includes(at));
  const send = () => {
    setTried(true);
    if (named && (!usesImages || draft.image)) create.mutate();
  };
  const shared = { draft, change, troubles, limits };
  return (
    <div className="page">
      <PageHead title={say("create")} />
      <div className="env-form">
        <Form layout="vertical" className="surface" onFinish={send} noValidate>
          {elsewhere && <div style={{ marginBottom: 16 }}><Trouble error={create.error} /></div>}
          <NameField {...shared} />
          <ImageField {...shared} engine={who.engine} />
          <PlaceFields {...shared} groups={groups} />
          <TimeFields {...shared} />
          {Object.keys(draft.other).length > 0 && (
            <Form.Item label={say("also")}>
              {Object.entries(draft.other).map(([key, value]) => (
                <Tag key={key} closable onClose={() => change({ other: Object.fromEntries(Object.entries(draft.other).filter(([one]) => one !== key)) })}>{key}: {value}</Tag>
              ))}
            </Form.Item>
          )}
          <Button type="primary" htmlType="submit" loading={slow(create.isPending)}>{say("createIt")}</Button>
        </Form>
        <Outlook
          outlook={outlook.data}
          error={outlook.error instanceof Refusal ? outlook.error : null}
          old={outlook.isPlaceholderData}
          empty={usesImages && draft.image === ""}
          onTake={(changes) => change(withOffer(draft, changes))}
        />
      </div>
    </div>
  );
}
