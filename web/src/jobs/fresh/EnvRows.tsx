/** Environment variables, one to a row. A row without a name is not part of the job yet. */
import { DeleteOutlined, PlusOutlined } from "@ant-design/icons";
import { Button, Form, Input } from "antd";
import { useState } from "react";
import { useWords } from "@/words";
import { jobWords } from "../words";

type Row = [name: string, value: string];

interface Props {
  env: Row[];
  write: (env: Row[]) => void;
  problem?: string;
}

const same = (one: readonly Row[], two: readonly Row[]) => JSON.stringify(one) === JSON.stringify(two);

export function EnvRows({ env, write, problem }: Props) {
  const say = useWords(jobWords);
  const [typed, setTyped] = useState<Row[]>(env);
  // Names typed twice, or not at all, cannot be in the file; what is typed is shown as long as the rest agrees with it.
  const rows = same([...new Map(typed.filter(([name]) => name !== ""))], env) ? typed : env;
  const change = (now: Row[]) => {
    setTyped(now);
    write(now);
  };
  const put = (at: number, row: Row) => change(rows.map((one, index) => (index === at ? row : one)));
  return (
    <Form.Item label={say("env")} validateStatus={problem ? "error" : undefined} help={problem}>
      {rows.map(([name, value], at) => (
        // oxlint-disable-next-line react/no-array-index-key -- names are being typed: the place is what stays
        <div key={at} className="env-row">
          <Input className="mono" aria-label={say("envName", { n: at + 1 })} value={name} spellCheck={false} onChange={(event) => put(at, [event.target.value, value])} />
          <Input className="mono" aria-label={say("envValue", { n: at + 1 })} value={value} spellCheck={false} onChange={(event) => put(at, [name, event.target.value])} />
          <Button icon={<DeleteOutlined />} aria-label={say("envRemove", { name })} onClick={() => change(rows.filter((_, index) => index !== at))} />
        </div>
      ))}
      <Button icon={<PlusOutlined />} onClick={() => change([...rows, ["", ""]])}>{say("envAdd")}</Button>
    </Form.Item>
  );
}
