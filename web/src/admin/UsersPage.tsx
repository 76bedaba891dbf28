/** Everybody with an account, and what can be done about them. */
import { MoreOutlined, PlusOutlined } from "@ant-design/icons";
import { Button, Dropdown, Input, type MenuProps, Table, type TableColumnsType, Tag } from "antd";
import { useState } from "react";
import { Link } from "react-router-dom";
import type { Schemas } from "@/api/client";
import { PageHead, Trouble } from "@/look/parts";
import { useSession } from "@/session/session";
import { useWords } from "@/words";
import { AddUser } from "./AddUser";
import { ForAdmins, OneTimePassword, useFilters, useUsers } from "./parts";
import { UserGroups } from "./UserGroups";
import { useUserActions } from "./userActions";
import { adminWords } from "./words";

type User = Schemas["UserOut"];

const roleOf = (user: User): "admin" | "lead" | "member" =>
  user.admin ? "admin" : user.memberships.some((one) => one.role === "lead") ? "lead" : "member";

export default function UsersPage() {
  const say = useWords(adminWords);
  const [adding, setAdding] = useState(false);
  const [secret, setSecret] = useState<{ name: string; password: string } | null>(null);
  const [seating, setSeating] = useState<string | null>(null);
  const [{ q = "" }, setFilter] = useFilters(["q"]);
  const { data, error, refetch } = useUsers();
  const found = data?.items.filter((user) => user.name.includes(q) || user.memberships.some((one) => one.group.includes(q)));
  const columns: TableColumnsType<User> = [
    { title: say("name"), dataIndex: "name", sorter: (a, b) => a.name.localeCompare(b.name), defaultSortOrder: "ascend" },
    { title: say("role"), render: (_, user) => say(roleOf(user)) },
    { title: say("groups"), render: (_, user) => <Seats user={user} /> },
    { title: say("state"), render: (_, user) => <Standing user={user} /> },
    {
      title: say("actions"),
      align: "right",
      render: (_, user) => <Actions user={user} onSecret={(password) => setSecret({ name: user.name, password })} onSeats={() => setSeating(user.name)} />,
    },
  ];
  return (
    <ForAdmins>
      <PageHead title={say("users")}>
        <Input.Search allowClear aria-label={say("find")} placeholder={say("find")} defaultValue={q} onChange={(event) => setFilter("q", event.target.value)} style={{ width: 200 }} />
        <Button type="primary" icon={<PlusOutlined />} onClick={() => setAdding(true)}>{say("addUser")}</Button>
      </PageHead>
      {error && <Trouble error={error} again={() => void refetch()} />}
      <Table
        rowKey="name"
        columns={columns}
        dataSource={found ?? []}
        loading={!data && !error}
        scroll={{ x: "max-content" }}
        locale={{ emptyText: say("usersNone") }}
        pagination={{ pageSize: 50, hideOnSinglePage: true, showSizeChanger: false }}
      />
      <AddUser
        open={adding}
        onClose={() => setAdding(false)}
        onMade={(made) => {
          setAdding(false);
          if (made.password) setSecret({ name: made.name, password: made.password });
        }}
      />
      <OneTimePassword name={secret?.name ?? ""} password={secret?.password ?? null} onClose={() => setSecret(null)} />
      <UserGroups name={seating} onClose={() => setSeating(null)} />
    </ForAdmins>
  );
}

function Seats({ user }: { user: User }) {
  const say = useWords(adminWords);
  return (
    <span className="row" style={{ gap: 4 }}>
      {user.memberships.map((one) => (
        <Link key={one.group} to={`/admin/groups?group=${encodeURIComponent(one.group)}`}>
          <Tag color={one.role === "lead" ? "blue" : undefined}>{one.group}{one.role === "lead" && ` · ${say("lead")}`}</Tag>
        </Link>
      ))}
    </span>
  );
}

function Standing({ user }: { user: User }) {
  const say = useWords(adminWords);
  if (!user.active) return <span className="state state-idle">{say("disabled")}</span>;
  return (
    <span className="row">
      <span className="state state-good">{say("active")}</span>
      {user.must_change_password && <span className="quiet">{say("mustChange")}</span>}
    </span>
  );
}

function Actions({ user, onSecret, onSeats }: { user: User; onSecret: (password: string) => void; onSeats: () => void }) {
  const say = useWords(adminWords);
  const { who } = useSession();
  const act = useUserActions(user, onSecret);
  const self = who.user.name === user.name;
  const own = self ? { disabled: true, title: say("yourself") } : {};
  const items: MenuProps["items"] = [
    { key: "groups", label: say("changeGroups"), onClick: onSeats },
    { key: "password", label: say("resetPassword"), onClick: () => void act.reset(), ...own },
    { key: "admin", label: say(user.admin ? "takeAdmin" : "makeAdmin"), onClick: () => void act.setAdmin(!user.admin), ...own },
    { key: "active", label: say(user.active ? "disable" : "enable"), onClick: () => void act.setActive(!user.active), ...own },
    { type: "divider" },
    { key: "remove", label: say("remove"), danger: true, onClick: () => void act.remove(), ...own },
  ];
  return (
    <Dropdown menu={{ items }} trigger={["click"]}>
      <Button size="small" icon={<MoreOutlined />} aria-label={say("actionsOf", { name: user.name })} />
    </Dropdown>
  );
}
