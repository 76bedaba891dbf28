/** Oneself: password, tokens, keys, and how the console looks and speaks. Tabs are part of the address. */
import { Button, Segmented, Tabs } from "antd";
import { useSearchParams } from "react-router-dom";
import { Moment, PageHead } from "@/look/parts";
import { useLook } from "@/look/theme";
import { useSession } from "@/session/session";
import { type Language, useLanguage, useWords } from "@/words";
import { KeysTab } from "./KeysTab";
import { PasswordTab } from "./PasswordTab";
import { TokensTab } from "./TokensTab";
import { accountWords } from "./words";

export default function AccountPage() {
  const say = useWords(accountWords);
  const [search, setSearch] = useSearchParams();
  const tabs = [
    { key: "about", label: say("about"), children: <AboutTab /> },
    { key: "password", label: say("password"), children: <PasswordTab /> },
    { key: "tokens", label: say("tokens"), children: <TokensTab /> },
    { key: "keys", label: say("keys"), children: <KeysTab /> },
  ];
  const wished = search.get("tab") ?? "";
  const open = tabs.some((tab) => tab.key === wished) ? wished : "about";
  return (
    <div className="page">
      <PageHead title={say("title")} />
      <Tabs style={{ maxWidth: 912 }} activeKey={open} onChange={(tab) => setSearch(tab === "about" ? {} : { tab }, { replace: true })} items={tabs} />
    </div>
  );
}

function AboutTab() {
  const say = useWords(accountWords);
  const { who, logOut } = useSession();
  const { language, speak } = useLanguage();
  const { look, choose } = useLook();
  const groups = who.user.memberships.map((one) => `${one.group} (${say(one.role === "lead" ? "lead" : "member")})`).join(", ");
  const languages = [{ value: "en" as Language, label: "English" }, { value: "zh" as Language, label: "中文" }];
  return (
    <div className="stack">
      <section className="surface stack">
        <div><div className="quiet">{say("name")}</div><strong>{who.user.name}</strong>{who.user.admin && ` · ${say("admin")}`}</div>
        <div><div className="quiet">{say("groups")}</div>{groups || "–"}</div>
        {who.expires_at && <div><div className="quiet">{say("until")}</div><Moment at={who.expires_at} /></div>}
        <div><Button onClick={() => void logOut()}>{say("logOut")}</Button></div>
      </section>
      <section className="surface stack">
        <h2 style={{ margin: 0 }}>{say("looks")}</h2>
        <div><div className="quiet" style={{ marginBottom: 4 }}>{say("language")}</div><Segmented aria-label={say("language")} options={languages} value={language} onChange={speak} /></div>
        <div>
          <div className="quiet" style={{ marginBottom: 4 }}>{say("theme")}</div>
          <Segmented aria-label={say("theme")} options={(["light", "dark", "system"] as const).map((value) => ({ value, label: say(value) }))} value={look} onChange={choose} />
        </div>
      </section>
    </div>
  );
}
