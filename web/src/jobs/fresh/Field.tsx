/** One line of the form. What is typed stays as typed, as long as it means what the text says. */
import { AutoComplete, Form, Input } from "antd";
import { type ReactNode, useState } from "react";
import { meant } from "./draft";

interface Props {
  field: string;
  label: string;
  value: string;
  write: (value: string) => void;
  hint?: ReactNode;
  problem?: string;
  disabled?: boolean;
  lines?: number;
  choices?: readonly string[];
  mono?: boolean;
}

export function Field({ field, label, value, write, hint, problem, disabled, lines, choices, mono }: Props) {
  const [typed, setTyped] = useState(value);
  const shown = String(meant(typed)) === String(meant(value)) ? typed : value;
  const change = (now: string) => {
    setTyped(now);
    write(now);
  };
  const common = { id: `job-${field}`, value: shown, disabled, className: mono ? "mono" : undefined, "aria-describedby": `job-${field}-hint` };
  return (
    <Form.Item
      label={label}
      htmlFor={`job-${field}`}
      validateStatus={problem ? "error" : undefined}
      help={<span id={`job-${field}-hint`} role={problem ? "alert" : undefined}>{problem ?? hint}</span>}
      className={lines ? "wide-field" : undefined}
    >
      {lines ? (
        <Input.TextArea {...common} autoSize={{ minRows: lines, maxRows: 14 }} spellCheck={false} onChange={(event) => change(event.target.value)} />
      ) : choices ? (
        <AutoComplete {...common} allowClear options={choices.map((choice) => ({ value: choice }))} onChange={(now: string | undefined) => change(now ?? "")} />
      ) : (
        <Input {...common} onChange={(event) => change(event.target.value)} />
      )}
    </Form.Item>
  );
}
