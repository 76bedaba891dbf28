/** What stands around every page: where one can go, who one is, and whether the server is heard. */
import { AppstoreOutlined, BarChartOutlined, CodeOutlined, DashboardOutlined, LogoutOutlined, MenuOutlined, SettingOutlined, UserOutlined } from "@ant-design/icons";
import { Alert, Button, Drawer, Dropdown, Menu, type MenuProps, Select, Tooltip } from "antd";
import { type ReactNode, Suspense, useState } from "react";
import { Link, Outlet, useLocation } from "react-router-dom";
import { useLiveState } from "@/api/news";
import { useSession } from "@/session/session";
import { type Language, useLanguage, useWords } from "@/words";
import { useLook } from "./theme";
import { lookWords } from "./words";

type Item = { key: string; icon?: ReactNode; label: ReactNode; children?: Item[] };

function usePlaces(): Item[] {
  const say = useWords(lookWords);
  const { who } = useSession();
  const to = (path: string, label: string) => <Link to={path}>{label}</Link>;
  const places: Item[] = [
    { key: "/", icon: <DashboardOutlined />, label: to("/", say("overview")) },
    { key: "/envs", icon: <CodeOutlined />, label: to("/envs", say("envs")) },
    { key: "/jobs", icon: <AppstoreOutlined />, label: to("/jobs", say("jobs")) },
    { key: "/ledger", icon: <BarChartOutlined />, label: to("/ledger", say("ledger")) },
  ];
  const admin = who.user.admin;
  const leads = who.user.memberships.some((one) => one.role === "lead");
  if (admin || leads) {
    const pages = admin ? (["workloads", "nodes", "users", "groups", "policy", "audit"] as const) : (["workloads", "groups"] as const);
    const children = pages.map((page) => ({ key: `/admin/${page}`, label: to(`/admin/${page}`, say(page)) }));
    places.push({ key: "/admin", icon: <SettingOutlined />, label: say("admin"), children });
  }
  places.push({ key: "/account", icon: <UserOutlined />, label: to("/account", say("account")) });
  return places;
}

function Places({ onGo }: { onGo?: () => void }) {
  const { pathname } = useLocation();
  const places = usePlaces();
  const keys = places.flatMap((one) => [one.key, ...(one.children ?? []).map((child) => child.key)]);
  const chosen = keys.filter((key) => (key === "/" ? pathname === "/" : pathname === key || pathname.startsWith(`${key}/`)));
  return (
    <Menu
      mode="inline"
      items={places as MenuProps["items"]}
      selectedKeys={chosen.slice(-1)}
      defaultOpenKeys={["/admin"]}
      onClick={() => onGo?.()}
      style={{ borderInlineEnd: 0 }}
    />
  );
}

function WhoAndHow() {
  const say = useWords(lookWords);
  const { language, speak } = useLanguage();
  const { look, choose } = useLook();
  const { who, logOut } = useSession();
  const looks = (["light", "dark", "system"] as const).map((value) => ({ value, label: say(value) }));
  return (
    <div className="row" style={{ gap: 8 }}>
      <Select
        aria-label={say("language")}
        size="small"
        value={language}
        onChange={(wish: Language) => speak(wish)}
        options={[{ value: "en", label: "English" }, { value: "zh", label: "中文" }]}
        style={{ width: 92 }}
      />
      <Select aria-label={say("theme")} size="small" value={look} onChange={choose} options={looks} className="wide-only" style={{ width: 148 }} />
      <Dropdown menu={{ items: [{ key: "out", icon: <LogoutOutlined />, label: say("logOut"), onClick: () => void logOut() }] }}>
        <Button size="small" icon={<UserOutlined />}>{who.user.name}</Button>
      </Dropdown>
    </div>
  );
}

/** Told when the server is not heard, and when it speaks another version than this page. */
function LineState() {
  const say = useWords(lookWords);
  const { down, stale } = useLiveState();
  if (down) return <Alert banner type="warning" title={say("down")} role="status" />;
  if (!stale) return null;
  const reload = <Button size="small" onClick={() => location.reload()}>{say("reload")}</Button>;
  return <Alert banner type="info" title={say("newVersion")} action={reload} role="status" />;
}

export function Frame() {
  const say = useWords(lookWords);
  const [open, setOpen] = useState(false);
  return (
    <div className="frame">
      <a className="skip-link" href="#content">{say("skip")}</a>
      <header className="top">
        <div className="row">
          <Tooltip title={say("menu")}>
            <Button className="narrow-only" type="text" icon={<MenuOutlined />} aria-label={say("menu")} onClick={() => setOpen(true)} />
          </Tooltip>
          <Link to="/" className="brand"><img src="/icon.svg" alt="" width={22} height={22} /> gpuyard</Link>
        </div>
        <WhoAndHow />
      </header>
      <LineState />
      <div className="frame-body">
        <nav className="side wide-only" aria-label={say("menu")}><Places /></nav>
        <Drawer open={open} onClose={() => setOpen(false)} placement="left" size={260} title="gpuyard">
          <Places onGo={() => setOpen(false)} />
        </Drawer>
        <main id="content" tabIndex={-1} style={{ flex: 1, minWidth: 0, outline: "none" }}>
          <Suspense fallback={<div className="page" aria-busy="true" />}><Outlet /></Suspense>
        </main>
      </div>
    </div>
  );
}
