/** The values of the policy as a form; what is wrong stands at its field. */
import { Input, InputNumber, Select, Switch } from "antd";
import { useWords } from "@/words";
import { type Field, type Policy, SECTIONS, valueAt, withValue, wrongAt } from "./policyForm";
import { policyWords } from "./policyWords";

interface Props {
  policy: Policy;
  wrong: Readonly<Record<string, string>>;
  onChange: (policy: Policy) => void;
}

export function PolicyFields({ policy, wrong, onChange }: Props) {
  const say = useWords(policyWords);
  const classes = Object.keys((valueAt(policy, "priorities") as object | undefined) ?? {});
  return (
    <div className="stack" style={{ gap: 24 }}>
      <section>
        <h2>{say("priorities")}</h2>
        <div className="policy-fields">
          {classes.map((name) => (
            <OneField key={name} label={name} field={{ path: "priorities", kind: "number" }} path={`priorities.${name}`} policy={policy} wrong={wrong} onChange={onChange} />
          ))}
        </div>
      </section>
      {SECTIONS.map((section) => (
        <section key={section.title}>
          <h2>{say(section.title)}</h2>
          <div className="policy-fields">
            {section.fields.map((field) => <OneField key={field.path} label={say(field.path)} field={field} path={field.path} policy={policy} wrong={wrong} onChange={onChange} />)}
          </div>
        </section>
      ))}
      <span className="quiet">{say("rest")}</span>
    </div>
  );
}

function OneField({ label, field, path, policy, wrong, onChange }: Props & { label: string; field: Field; path: string }) {
  const problem = wrongAt(wrong, path);
  const id = `policy-${path}`;
  return (
    <div>
      <label htmlFor={id}>{label}</label>
      <Control id={id} kind={field.kind} problem={problem} value={valueAt(policy, path)} onChange={(value) => onChange(withValue(policy, path, value))} />
      {problem && <div id={`${id}-wrong`} role="alert" className="state-bad">{problem}</div>}
    </div>
  );
}

interface ControlProps {
  id: string;
  kind: Field["kind"];
  problem: string | undefined;
  value: unknown;
  onChange: (value: unknown) => void;
}

function Control({ id, kind, problem, value, onChange }: ControlProps) {
  const say = useWords(policyWords);
  const shared = { id, status: problem ? ("error" as const) : undefined, "aria-describedby": problem ? `${id}-wrong` : undefined, style: { width: "100%" } };
  if (kind === "switch") return <Switch id={id} checked={value === true} onChange={onChange} />;
  if (kind === "number" || kind === "part") return <InputNumber {...shared} value={value as number} step={kind === "part" ? 0.05 : 1} onChange={onChange} />;
  if (kind === "mode") {
    const options = (["never", "propose", "move"] as const).map((one) => ({ value: one, label: say(one) }));
    return <Select {...shared} value={value as string} options={options} onChange={onChange} />;
  }
  if (kind === "first") {
    const options = (["share", "shortest", "least_served"] as const).map((one) => ({ value: one, label: say(one) }));
    return <Select {...shared} value={value as string} options={options} onChange={onChange} />;
  }
  if (kind === "choice") {
    const options = (["fragments", "best_fit", "spread", "in_order"] as const).map((one) => ({ value: one, label: say(one) }));
    return <Select {...shared} value={value as string} options={options} onChange={onChange} />;
  }
  if (kind === "list") return <Select {...shared} mode="tags" open={false} suffixIcon={null} value={(value as string[] | undefined) ?? []} onChange={onChange} />;
  return <Input {...shared} value={typeof value === "string" ? value : String(value ?? "")} onChange={(event) => onChange(event.target.value)} />;
}
