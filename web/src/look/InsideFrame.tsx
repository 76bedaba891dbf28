/** Something that runs inside a workload, shown inside a page: it comes from another host, and reaches nothing of ours. */
import { ExportOutlined, ReloadOutlined } from "@ant-design/icons";
import { Button } from "antd";
import { type ReactNode, useCallback, useEffect, useState } from "react";
import { api, asked } from "@/api/client";
import { Trouble, useTell } from "./parts";
import { useSession } from "@/session/session";
import { useWords } from "@/words";

const frameWords = {
  reload: ["Open again", "重新打开"],
  outside: ["Open in a new tab", "在新标签页中打开"],
  opening: ["Opening …", "正在打开……"],
} as const;

// It may do all that programs need, but never lead the surrounding page elsewhere.
const MAY = "allow-scripts allow-same-origin allow-forms allow-popups allow-downloads allow-modals";

export interface Inside {
  id: string; // of the workload
  what: string; // lab, ide, terminal or p8080
  path?: string;
}

/** An address for one visit, good for a minute. */
export async function addressOf({ id, what, path = "" }: Inside): Promise<string> {
  const params = { path: { ref: id } };
  return (await asked(api.POST("/api/v1/workloads/{ref}/open", { params, body: { what, path } }))).url;
}

/** In a tab of its own. It is opened before it is asked for, while the click still counts. */
export async function openOutside(inside: Inside): Promise<void> {
  const tab = window.open("about:blank");
  try {
    const url = await addressOf(inside);
    if (!tab) return;
    tab.opener = null;
    tab.location.replace(url);
  } catch (trouble) {
    tab?.close();
    throw trouble;
  }
}

/** What the visitor has copied elsewhere is read by their own programs and by our terminal, not by other people's pages. */
export function lent(what: string, isMine: boolean): string {
  return isMine || what === "terminal" ? "clipboard-read; clipboard-write" : "clipboard-write";
}

/** One visit: with another key it is another one. */
function Visit({ id, what, path, title, isMine, again }: Inside & { title: string; isMine: boolean; again: () => void }) {
  const say = useWords(frameWords);
  const [found, setFound] = useState<{ url?: string; error?: unknown }>({});
  useEffect(() => {
    let left = false;
    addressOf({ id, what, path }).then(
      (url) => left || setFound({ url }),
      (error: unknown) => left || setFound({ error }),
    );
    return () => {
      left = true;
    };
  }, [id, what, path]);
  if (found.error !== undefined) return <Trouble error={found.error} again={again} />;
  if (found.url === undefined) return <div className="inside-frame quiet" aria-busy="true">{say("opening")}</div>;
  return <iframe key={found.url} className="inside-frame" title={title} src={found.url} sandbox={MAY} allow={lent(what, isMine)} />;
}

export function InsideFrame({ title, owner, children, ...inside }: Inside & { title: string; owner: string; children?: ReactNode }) {
  const say = useWords(frameWords);
  const isMine = useSession().who.user.name === owner;
  const tell = useTell();
  const [round, setRound] = useState(0);
  const again = useCallback(() => setRound((before) => before + 1), []);
  return (
    <div className="stack" style={{ gap: 8 }}>
      <div className="spread">
        <div>{children}</div>
        <div className="row">
          <Button size="small" icon={<ReloadOutlined />} onClick={again}>{say("reload")}</Button>
          <Button size="small" icon={<ExportOutlined />} onClick={() => openOutside(inside).catch(tell)}>{say("outside")}</Button>
        </div>
      </div>
      <Visit key={`${inside.id} ${inside.what} ${round}`} {...inside} title={title} isMine={isMine} again={again} />
    </div>
  );
}
