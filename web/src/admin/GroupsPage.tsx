/** Groups: how much each may use, can count on and uses now. Leads see theirs. */
import { PlusOutlined } from "@ant-design/icons";
import { Button, Drawer, Input, Table, type TableColumnsType } from "antd";
import { useState } from "react";
import { Link } from "react-router-dom";
import { PageHead, Trouble } from "@/look/parts";
import "@/overview/overview.css";
import { amountOf, Bar } from "@/overview/QuotaPanel";
import { useSession } from "@/session/session";
import { useWords } from "@/words";
import { AddGroup } from "./AddGroup";
import "./admin.css";
import { GroupDetail } from "./GroupDetail";
import { groupWords } from "./groupWords";
import { ForAdmins, useFilters, useGroups, useLeads } from "./parts";
import { type Group, lineOf, RESOURCES, usedOf } from "./quotas";

export default function GroupsPage() {
  const say = useWords(groupWords);
  const { who } = useSession();
  const leads = useLeads();
  const [{ q = "", group: open }, setFilter] = useFilters(["q", "group"]);
  const [adding, setAdding] = useState(false);
  const { data, error, refetch } = useGroups();
  const mine = data?.items.filter((one) => who.user.admin || leads.includes(one.name));
  const found = mine?.filter((one) => one.name.includes(q) || one.members.some((member) => member.user.includes(q)));
  const shown = mine?.find((one) => one.name === open);
  const columns: TableColumnsType<Group> = [
    { title: say("name"), dataIndex: "name", sorter: (a, b) => a.name.localeCompare(b.name), defaultSortOrder: "ascend", render: (name: string) => <Link to={`?group=${encodeURIComponent(name)}`} aria-label={say("open", { name })}>{name}</Link> },
    { title: say("leads"), render: (_, group) => group.members.filter((one) => one.role === "lead").map((one) => one.user).join(", ") || "–" },
    { title: say("members"), align: "right", render: (_, group) => group.members.length },
    { title: say("use"), render: (_, group) => <Uses group={group} /> },
    { title: say("weight"), align: "right", dataIndex: "weight" },
  ];
  return (
    <ForAdmins leadsToo>
      <PageHead title={say("title")}>
        <Input.Search allowClear aria-label={say("find")} placeholder={say("find")} defaultValue={q} onChange={(event) => setFilter("q", event.target.value)} style={{ width: 200 }} />
        {who.user.admin && <Button type="primary" icon={<PlusOutlined />} onClick={() => setAdding(true)}>{say("add")}</Button>}
      </PageHead>
      {error && <Trouble error={error} again={() => void refetch()} />}
      <Table rowKey="name" columns={columns} dataSource={found ?? []} loading={!data && !error} scroll={{ x: "max-content" }} locale={{ emptyText: say("none") }} pagination={{ pageSize: 50, hideOnSinglePage: true, showSizeChanger: false }} />
      <AddGroup
        open={adding}
        onClose={() => setAdding(false)}
        onMade={(name) => {
          setAdding(false);
          setFilter("group", name);
        }}
      />
      <Drawer open={shown !== undefined} onClose={() => setFilter("group", undefined)} title={shown?.name} size={720} destroyOnHidden>
        {shown && <GroupDetail key={shown.name} group={shown} onGone={(into) => setFilter("group", into)} />}
      </Drawer>
    </ForAdmins>
  );
}

function Uses({ group }: { group: Group }) {
  const say = useWords(groupWords);
  const shown = RESOURCES.filter((one) => lineOf(group, one) ?? usedOf(group, one));
  return (
    <div style={{ display: "grid", gap: 6, minWidth: 200 }}>
      {shown.map((resource) => {
        const limit = lineOf(group, resource)?.limit ?? null;
        const used = usedOf(group, resource);
        const total = limit === null ? say("unlimited") : amountOf(resource, limit);
        return (
          <div key={resource}>
            <span className="spread" style={{ gap: 8 }}><span>{say(resource)}</span><span className="quiet">{say("ofTotal", { used: amountOf(resource, used), total })}</span></span>
            <Bar used={used} limit={limit} label={`${group.name} ${say(resource)}`} />
          </div>
        );
      })}
      {shown.length === 0 && "–"}
    </div>
  );
}
