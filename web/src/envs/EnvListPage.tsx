/** Dev environments: one's own, or all one may see. */
import { PlusOutlined } from "@ant-design/icons";
import { Segmented, Table, type TableColumnsType } from "antd";
import { Link, useSearchParams } from "react-router-dom";
import { LinkButton } from "@/look/LinkButton";
import { Ago, Nothing, PageHead, StateMark, Trouble } from "@/look/parts";
import { Said } from "@/overview/Said";
import { useSession } from "@/session/session";
import { useWords } from "@/words";
import { type Env, useEnvs } from "./asking";
import { EnvActions } from "./EnvActions";
import "./envs.css";
import { Resources } from "./Resources";
import { envWords } from "./words";

/** One's own are known by their names, others' by their ids. */
export const addressOfEnv = (env: Pick<Env, "id" | "name" | "owner">, me: string): string => `/envs/${env.owner === me ? env.name : env.id}`;

function useColumns(everyone: boolean): TableColumnsType<Env> {
  const say = useWords(envWords);
  const { who } = useSession();
  const columns: TableColumnsType<Env> = [
    { title: say("name"), key: "name", render: (_, env) => <Link to={addressOfEnv(env, who.user.name)}>{env.name}</Link> },
    {
      title: say("state"),
      key: "state",
      render: (_, env) => (
        <div>
          <StateMark state={env.state} kind="env" />
          {env.state !== "running" && <div className="quiet env-reason"><Said text={env.reason} /></div>}
        </div>
      ),
    },
    { title: say("resources"), key: "resources", render: (_, env) => <Resources env={env} /> },
    { title: say("image"), key: "image", render: (_, env) => <span className="quiet env-image">{env.image ?? "–"}</span> },
    { title: say("lastUsed"), key: "used", render: (_, env) => (env.used_at ? <Ago at={env.used_at} /> : <span className="quiet">{say("unused")}</span>) },
    { title: say("actions"), key: "actions", render: (_, env) => <EnvActions env={env} small /> },
  ];
  if (everyone) columns.splice(1, 0, { title: say("owner"), dataIndex: "owner", key: "owner" });
  return columns;
}

export default function EnvListPage() {
  const say = useWords(envWords);
  const { who } = useSession();
  const [search, setSearch] = useSearchParams();
  const seesMore = who.user.admin || who.user.memberships.some((one) => one.role === "lead");
  const everyone = seesMore && search.get("all") === "1";
  const { data, error, refetch } = useEnvs(everyone);
  const columns = useColumns(everyone);
  const create = <LinkButton to="/envs/new" type="primary" icon={<PlusOutlined />}>{say("create")}</LinkButton>;
  const whose = [{ value: "", label: say("mine") }, { value: "1", label: say("everyones") }];
  return (
    <div className="page">
      <PageHead title={say("title")}>
        {seesMore && (
          <Segmented aria-label={say("whose")} options={whose} value={everyone ? "1" : ""} onChange={(all) => setSearch(all ? { all } : {}, { replace: true })} />
        )}
        {create}
      </PageHead>
      {error && <Trouble error={error} again={() => void refetch()} />}
      {data?.items.length === 0 && (
        <Nothing title={say(everyone ? "noneSeen" : "none")}>
          <p className="quiet" style={{ maxWidth: 560, margin: 0 }}>{say("noneWhy")}</p>
          {create}
        </Nothing>
      )}
      {!!data?.items.length && (
        <Table<Env> rowKey="id" columns={columns} dataSource={data.items} pagination={false} scroll={{ x: "max-content" }} />
      )}
    </div>
  );
}
