/** Light and dark, and the colours of states: chosen for a contrast of at least 4.5 on both grounds. */
import { App as AntApp, ConfigProvider, theme as ant } from "antd";
import enUS from "antd/locale/en_US";
import zhCN from "antd/locale/zh_CN";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { useLanguage } from "@/words";

export type Look = "light" | "dark" | "system";
const KEPT_AS = "yard.look";

interface Looking {
  look: Look;
  dark: boolean;
  choose: (look: Look) => void;
}

const LookContext = createContext<Looking>({ look: "system", dark: false, choose: () => undefined });
export const useLook = (): Looking => useContext(LookContext);

const DARK = "(prefers-color-scheme: dark)";
const STILL = "(prefers-reduced-motion: reduce)";

/** What the system says of the one in front of it, and when it says otherwise. */
function useMedia(question: string): boolean {
  const [answer, setAnswer] = useState(() => matchMedia(question).matches);
  useEffect(() => {
    const query = matchMedia(question);
    const change = () => setAnswer(query.matches);
    change(); // it may have changed since this page first looked
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, [question]);
  return answer;
}

const keptLook = (): Look => {
  const kept = localStorage.getItem(KEPT_AS);
  return kept === "light" || kept === "dark" ? kept : "system";
};

export function LookProvider({ children }: { children: ReactNode }) {
  const [look, setLook] = useState<Look>(keptLook);
  const systemDark = useMedia(DARK);
  const still = useMedia(STILL);
  const dark = look === "dark" || (look === "system" && systemDark);
  const { language } = useLanguage();
  useEffect(() => {
    document.documentElement.dataset["look"] = dark ? "dark" : "light";
    document.documentElement.style.colorScheme = dark ? "dark" : "light";
  }, [dark]);
  const looking = useMemo(
    () => ({
      look,
      dark,
      choose: (wish: Look) => {
        localStorage.setItem(KEPT_AS, wish);
        setLook(wish);
      },
    }),
    [look, dark],
  );
  return (
    <LookContext.Provider value={looking}>
      <ConfigProvider
        locale={language === "zh" ? zhCN : enUS}
        button={{ autoInsertSpace: false }}
        theme={{
          algorithm: dark ? ant.darkAlgorithm : ant.defaultAlgorithm,
          token: {
            colorPrimary: dark ? "#2a66d9" : "#1554ad",
            colorLink: dark ? "#7fb0ff" : "#1554ad",
            colorTextSecondary: dark ? "#b6bcc6" : "#4a5361",
            colorTextTertiary: dark ? "#a3aab6" : "#5a6372",
            colorTextPlaceholder: dark ? "#9aa2ae" : "#666f7d",
            colorError: dark ? "#ff7b72" : "#c02b2b",
            colorWarning: dark ? "#f0b145" : "#9a5b00",
            colorSuccess: dark ? "#4cc76a" : "#1a7f37",
            colorWarningBg: dark ? "#2b2211" : "#fff7e8",
            colorWarningBorder: dark ? "#6b4e12" : "#f0cf94",
            colorErrorBg: dark ? "#2d1614" : "#fff1f0",
            colorErrorBorder: dark ? "#7a2e2a" : "#f3b8b4",
            colorSuccessBg: dark ? "#12261a" : "#effaf1",
            colorSuccessBorder: dark ? "#2a5a38" : "#b2dfbd",
            borderRadius: 6,
            motion: !still,
          },
          // White on the primary colour can be read, but not that colour as text on a dark ground.
          components: dark
            ? {
                Tabs: { itemSelectedColor: "#7fb0ff", itemActiveColor: "#7fb0ff", itemHoverColor: "#a9caff", inkBarColor: "#7fb0ff" },
                // The menu lies on the ground of the side, or of the drawer.
                Menu: { itemSelectedColor: "#a9caff", subMenuItemSelectedColor: "#a9caff", itemBg: "transparent", subMenuItemBg: "transparent" },
                Button: { defaultHoverColor: "#a9caff", defaultActiveColor: "#a9caff" },
                Slider: { railBg: "#4a5260", railHoverBg: "#5a6372", trackBg: "#5b93f0", trackHoverBg: "#7fb0ff", handleColor: "#7fb0ff", handleActiveColor: "#a9caff", dotBorderColor: "#9aa2ae" },
              }
            : {},
        }}
      >
        <AntApp>{children}</AntApp>
      </ConfigProvider>
    </LookContext.Provider>
  );
}
