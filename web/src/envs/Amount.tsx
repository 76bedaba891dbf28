/** How much of something: a slider with what is free now marked on it, and the number to type. */
import { Form, InputNumber, Slider } from "antd";
import type { ReactNode } from "react";
import { useWords } from "@/words";
import type { Range } from "./draft";
import { envWords } from "./words";

interface Props {
  id: string;
  label: string;
  value: number;
  range: Range;
  least?: number;
  help?: ReactNode;
  trouble?: string;
  onChange: (value: number) => void;
}

export function Amount({ id, label, value, range, least = 0, help, trouble, onChange }: Props) {
  const say = useWords(envWords);
  // Of cores and GiB only whole ones are counted in the range: a part more may still be there.
  const tooMuch = range.most > 0 && Math.floor(value) > range.most;
  const most = Math.max(range.most, tooMuch ? 0 : value, least);
  const told = trouble ?? (tooMuch ? say("tooMuch", { n: range.most }) : undefined);
  const now = range.now > 0 ? say("fitsNow", { n: range.now }) : say("nothingNow");
  const marks = range.now > least && range.now < most ? { [range.now]: "" } : undefined;
  const fits = value <= range.now;
  return (
    <Form.Item label={label} htmlFor={id} validateStatus={told ? "error" : undefined} help={told} extra={<><span className={fits ? undefined : "state-warn"}>{now}</span>{help && <div>{help}</div>}</>}>
      <div className="env-amount">
        <Slider min={least} max={most} value={value} marks={marks} onChange={onChange} ariaLabelForHandle={label} disabled={most <= least} />
        <InputNumber id={id} min={least} value={value} onChange={(wish) => onChange(wish ?? least)} disabled={most <= least} style={{ width: "100%" }} />
      </div>
    </Form.Item>
  );
}
