/** The fields of a new environment. What this platform cannot do is there, disabled, with the reason. */
import { useQuery } from "@tanstack/react-query";
import { AutoComplete, Form, Input, Select } from "antd";
import { api, asked } from "@/api/client";
import { bytes } from "@/look/parts";
import { useWords } from "@/words";
import { Amount } from "./Amount";
import { type Draft, type Limits, OFF } from "./draft";
import { envWords } from "./words";

interface Shared {
  draft: Draft;
  change: (wish: Partial<Draft>) => void;
  troubles: Readonly<Record<string, string>>;
  limits: Limits;
}

const wrong = (trouble: string | undefined) => (trouble ? { validateStatus: "error" as const, help: trouble } : {});

export function NameField({ draft, change, troubles }: Shared) {
  const say = useWords(envWords);
  return (
    <Form.Item label={say("name")} htmlFor="env-name" required extra={say("nameRule")} {...wrong(troubles["name"])}>
      {/* oxlint-disable-next-line jsx-a11y/no-autofocus -- the first field of a page that is one form */}
      <Input id="env-name" autoFocus value={draft.name} onChange={(event) => change({ name: event.target.value.trim() })} maxLength={40} autoComplete="off" spellCheck={false} />
    </Form.Item>
  );
}

export function ImageField({ draft, change, troubles, engine }: Shared & { engine: string }) {
  const say = useWords(envWords);
  const can = engine === "container";
  const { data } = useQuery({ queryKey: ["images"], queryFn: () => asked(api.GET("/api/v1/images")), enabled: can });
  const here = data?.items ?? [];
  const options = here.map((image) => ({
    value: image.name,
    label: <span className="spread" style={{ flexWrap: "nowrap" }}><span className="cut">{image.name}</span><span className="quiet">{bytes(image.size)}</span></span>,
  }));
  const fetched = data && draft.image !== "" && !here.some((image) => image.name === draft.image);
  const extra = !can ? say("imageNone", { engine }) : fetched ? say("imageFetched") : say("imagePick");
  return (
    <Form.Item label={say("image")} htmlFor="env-image" required={can} extra={extra} {...wrong(troubles["image"])}>
      <AutoComplete
        id="env-image"
        value={draft.image}
        disabled={!can}
        options={options}
        showSearch={{ filterOption: (typed, option) => String(option?.value ?? "").includes(typed) }}
        onChange={(image: string) => change({ image: (image ?? "").trim() })}
        placeholder={can ? "debian:12" : undefined}
      />
    </Form.Item>
  );
}

export function PlaceFields({ draft, change, troubles, limits, groups }: Shared & { groups: readonly string[] }) {
  const say = useWords(envWords);
  return (
    <>
      {groups.length > 1 && (
        <Form.Item label={say("group")} htmlFor="env-group" {...wrong(troubles["group"])}>
          <Select id="env-group" value={draft.group} onChange={(group) => change({ group })} options={groups.map((value) => ({ value, label: value }))} />
        </Form.Item>
      )}
      {limits.devices.length > 1 && (
        <Form.Item label={say("device")} htmlFor="env-device" {...wrong(troubles["device"])}>
          <Select id="env-device" value={draft.device || limits.devices[0]} onChange={(device) => change({ device })} options={limits.devices.map((value) => ({ value, label: value }))} />
        </Form.Item>
      )}
      <Amount id="env-cards" label={say("cards")} value={draft.cards} range={limits.cards} help={limits.devices.length === 0 ? say("noCards") : undefined} trouble={troubles["cards"]} onChange={(cards) => change({ cards })} />
      <Amount id="env-cpu" label={say("cpu")} value={draft.cpu} range={limits.cpu} help={say("fairHelp")} trouble={troubles["cpu"]} onChange={(cpu) => change({ cpu })} />
      <Amount id="env-memory" label={say("memory")} value={draft.memory} range={limits.memory} help={say("fairHelp")} trouble={troubles["memory"]} onChange={(memory) => change({ memory })} />
    </>
  );
}

const IDLE = [[OFF, "never"], ["30m", "minutes30"], ["1h", "hours1"], ["2h", "hours2"], ["8h", "hours8"], ["24h", "day"]] as const;
const TIMER = [[OFF, "never"], ["1h", "hours1"], ["4h", "hours4"], ["8h", "hours8"], ["24h", "day"], ["72h", "days3"]] as const;

export function IdleSelect({ id, value, onChange }: { id: string; value: string; onChange: (idle: string) => void }) {
  const say = useWords(envWords);
  return <Select id={id} aria-label={say("idle")} value={value} onChange={onChange} options={IDLE.map(([key, words]) => ({ value: key, label: say(words) }))} style={{ minWidth: 160 }} />;
}

export function TimeFields({ draft, change, troubles }: Shared) {
  const say = useWords(envWords);
  return (
    <div className="columns" style={{ gridTemplateColumns: "repeat(auto-fit, minmax(min(100%, 240px), 1fr))" }}>
      <Form.Item label={say("idle")} htmlFor="env-idle" extra={say("idleHelp")} {...wrong(troubles["idle"])}>
        <IdleSelect id="env-idle" value={draft.idle} onChange={(idle) => change({ idle })} />
      </Form.Item>
      <Form.Item label={say("timer")} htmlFor="env-timer" {...wrong(troubles["timer"])}>
        <Select id="env-timer" value={draft.timer} onChange={(timer) => change({ timer })} options={TIMER.map(([value, words]) => ({ value, label: say(words) }))} />
      </Form.Item>
    </div>
  );
}
