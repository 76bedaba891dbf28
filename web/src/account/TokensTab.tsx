/** Tokens for programs. The secret is shown once, and kept nowhere. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Alert, Button, Form, Input, Select, Table, type TableColumnsType } from "antd";
import { api, asked, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { Ago, CopyText, Moment, slow, Trouble, useConfirm, useTell } from "@/look/parts";
import { useSession } from "@/session/session";
import { useWords } from "@/words";
import { accountWords } from "./words";

type Token = Schemas["TokenOut"];
const KEY = keys.people("tokens");
const SCOPES = { read: "read", write: "write", admin: "adminScope" } as const;

function useTokens() {
  const client = useQueryClient();
  const again = () => client.invalidateQueries({ queryKey: KEY });
  const list = useQuery({ queryKey: KEY, queryFn: () => asked(api.GET("/api/v1/tokens")) });
  // gcTime 0: the secret does not stay in memory once it is no longer shown.
  const make = useMutation({ mutationFn: (body: Schemas["TokenIn"]) => asked(api.POST("/api/v1/tokens", { body })), onSuccess: again, gcTime: 0 });
  const revoke = useMutation({ mutationFn: (id: string) => asked(api.DELETE("/api/v1/tokens/{id}", { params: { path: { id } } })), onSettled: again, onError: useTell() });
  return { list, make, revoke };
}

export function TokensTab() {
  const say = useWords(accountWords);
  const confirm = useConfirm();
  const { list, make, revoke } = useTokens();
  const askRevoke = async (token: Token) => {
    if (await confirm({ title: say("revokeTitle", { name: token.name }), lost: say("revokeLost"), ok: say("revoke") })) revoke.mutate(token.id);
  };
  const columns: TableColumnsType<Token> = [
    { title: say("tokenName"), dataIndex: "name", key: "name" },
    { title: say("scope"), key: "scope", render: (_, token) => say(SCOPES[token.scope]) },
    { title: say("expiresAt"), key: "expires", render: (_, token) => (token.expires_at ? <Moment at={token.expires_at} /> : "–") },
    { title: say("lastUsed"), key: "used", render: (_, token) => (token.last_used_at ? <Ago at={token.last_used_at} /> : say("never")) },
    { title: say("actions"), key: "actions", render: (_, token) => <Button size="small" danger onClick={() => void askRevoke(token)} aria-label={`${say("revoke")}: ${token.name}`}>{say("revoke")}</Button> },
  ];
  return (
    <div className="stack">
      <section className="surface">
        <p className="quiet" style={{ marginTop: 0 }}>{say("tokensWhy")}</p>
        {make.data ? <Secret made={make.data} onKept={make.reset} /> : <NewToken onMake={(body) => make.mutate(body)} busy={make.isPending} error={make.error} />}
      </section>
      {list.error && <Trouble error={list.error} again={() => void list.refetch()} />}
      {list.data && <Table<Token> rowKey="id" size="small" columns={columns} dataSource={list.data.items} pagination={false} scroll={{ x: "max-content" }} locale={{ emptyText: say("tokensNone") }} />}
    </div>
  );
}

function Secret({ made, onKept }: { made: Schemas["TokenMade"]; onKept: () => void }) {
  const say = useWords(accountWords);
  return (
    <div className="stack">
      <Alert type="success" showIcon title={say("tokenShown")} description={<CopyText text={made.token} label={made.name} />} />
      <div><div className="quiet">{say("tokenUse")}</div><CopyText text={`export YARD_URL=${location.origin} YARD_TOKEN=${made.token}`} label="YARD_TOKEN" /></div>
      <div><Button onClick={onKept}>{say("kept")}</Button></div>
    </div>
  );
}

function NewToken({ onMake, busy, error }: { onMake: (body: Schemas["TokenIn"]) => void; busy: boolean; error: unknown }) {
  const say = useWords(accountWords);
  const { who } = useSession();
  const scopes = (who.user.admin ? (["read", "write", "admin"] as const) : (["read", "write"] as const)).map((value) => ({ value, label: say(SCOPES[value]) }));
  const days = ([[30, "days30"], [90, "days90"], [365, "days365"]] as const).map(([value, words]) => ({ value, label: say(words) }));
  return (
    <Form<Schemas["TokenIn"]> layout="vertical" requiredMark={false} initialValues={{ scope: "write", days: 90 }} onFinish={onMake}>
      {error ? <div style={{ marginBottom: 16 }}><Trouble error={error} /></div> : null}
      <div className="columns" style={{ gridTemplateColumns: "repeat(auto-fit, minmax(min(100%, 200px), 1fr))" }}>
        <Form.Item name="name" label={say("tokenName")} rules={[{ required: true, whitespace: true, message: say("tokenNameMissing") }]}><Input maxLength={64} autoComplete="off" /></Form.Item>
        <Form.Item name="scope" label={say("scope")}><Select options={scopes} /></Form.Item>
        <Form.Item name="days" label={say("expires")}><Select options={days} /></Form.Item>
      </div>
      <Button type="primary" htmlType="submit" loading={slow(busy)}>{say("makeToken")}</Button>
    </Form>
  );
}
