/** Who is logged in. Pages below may count on it. */
import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, lazy, type ReactNode, Suspense, useContext, useEffect, useMemo, useState } from "react";
import { api, asked, onLoggedOut, Refusal, type Schemas } from "@/api/client";
import { NewsProvider } from "@/api/news";
import { keepSessionKey, onOtherLogin, sessionKey } from "@/api/sessionKey";
import { Trouble } from "@/look/parts";

export type Who = Schemas["WhoAmIOut"];

interface Session {
  who: Who;
  logOut: () => Promise<void>;
}

const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error("nobody is logged in here");
  return session;
}

const LoginPage = lazy(() => import("./LoginPage"));
const FirstPasswordPage = lazy(() => import("./FirstPasswordPage"));

/** null: nobody is logged in. */
async function whoAmI(): Promise<Who | null> {
  if (!sessionKey()) return null;
  try {
    return await asked(api.GET("/api/v1/whoami"));
  } catch (error) {
    if (error instanceof Refusal && error.status === 401) return null;
    throw error;
  }
}

let lastSeen: string | undefined; // the person whose answers this page holds

/** What was answered to one person is not shown to the next who logs in on the same page. */
async function whoIsHere(client: QueryClient): Promise<Who | null> {
  const who = await whoAmI();
  if (who && lastSeen !== undefined && lastSeen !== who.user.name) client.removeQueries({ predicate: (query) => query.queryKey[0] !== "who" });
  lastSeen = who?.user.name ?? lastSeen;
  return who;
}

/** Shows the login, the first change of the password, or what is asked for: the address stays the same. */
export function SessionGate({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const [given, setGiven] = useState(""); // typed a moment ago: whoever has to change it need not type it again
  const { data: who, error, refetch } = useQuery({ queryKey: ["who"], queryFn: () => whoIsHere(client), staleTime: Infinity, retry: 1 });
  useEffect(() => onLoggedOut(() => client.setQueryData(["who"], null)), [client]);
  useEffect(() => onOtherLogin(() => void refetch()), [refetch]);
  const session = useMemo(
    () =>
      who && {
        who,
        logOut: async () => {
          await asked(api.POST("/api/v1/logout"));
          keepSessionKey(null); // and so the other tabs hear of it
          client.clear();
          location.assign("/");
        },
      },
    [who, client],
  );
  if (error && who === undefined) return <div className="page"><Trouble error={error} again={() => void refetch()} /></div>;
  if (who === undefined) return <div aria-busy="true" />;
  const logged = (password = "") => {
    setGiven(password);
    void refetch();
  };
  if (!session) return <Suspense><LoginPage onLogin={logged} /></Suspense>;
  if (session.who.user.must_change_password) return <Suspense><FirstPasswordPage given={given} onDone={() => logged()} logOut={session.logOut} /></Suspense>;
  return (
    <SessionContext.Provider key={session.who.user.name} value={session}>
      <NewsProvider version={session.who.version}>{children}</NewsProvider>
    </SessionContext.Provider>
  );
}
