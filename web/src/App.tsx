/** Everything around the pages, and which page stands at which address. */
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ComponentType, lazy } from "react";
import { createBrowserRouter, RouterProvider } from "react-router-dom";
import { Refusal } from "@/api/client";
import { Frame } from "@/look/Frame";
import { BrokenPage, NotFoundPage } from "@/look/LostPages";
import { LookProvider } from "@/look/theme";
import { SessionGate } from "@/session/session";
import { LanguageProvider } from "@/words";

const client = new QueryClient({
  defaultOptions: {
    // A browser without the internet takes itself for offline; the platform may be in the next room, or on its own machine.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      staleTime: 5_000,
      // A refusal stays one; a server that does not answer is asked again.
      retry: (tries, error) => !(error instanceof Refusal && error.status < 500) && tries < 2,
    },
  },
});

const page = (load: () => Promise<{ default: ComponentType }>) => {
  const Page = lazy(load);
  return <Page />;
};

const router = createBrowserRouter([
  {
    element: <Frame />,
    errorElement: <BrokenPage />,
    children: [
      { index: true, element: page(() => import("@/overview/OverviewPage")) },
      { path: "envs", element: page(() => import("@/envs/EnvListPage")) },
      { path: "envs/new", element: page(() => import("@/envs/NewEnvPage")) },
      { path: "envs/:name", element: page(() => import("@/envs/EnvPage")) },
      { path: "jobs", element: page(() => import("@/jobs/JobListPage")) },
      { path: "jobs/new", element: page(() => import("@/jobs/NewJobPage")) },
      { path: "jobs/:id", element: page(() => import("@/jobs/JobPage")) },
      { path: "ledger", element: page(() => import("@/ledger/LedgerPage")) },
      { path: "admin/users", element: page(() => import("@/admin/UsersPage")) },
      { path: "admin/groups", element: page(() => import("@/admin/GroupsPage")) },
      { path: "admin/nodes", element: page(() => import("@/admin/NodesPage")) },
      { path: "admin/workloads", element: page(() => import("@/admin/WorkloadsPage")) },
      { path: "admin/policy", element: page(() => import("@/admin/PolicyPage")) },
      { path: "admin/audit", element: page(() => import("@/admin/AuditPage")) },
      { path: "account", element: page(() => import("@/account/AccountPage")) },
      { path: "*", element: <NotFoundPage /> },
    ],
  },
]);

export function App() {
  return (
    <LanguageProvider>
      <LookProvider>
        <QueryClientProvider client={client}>
          <SessionGate>
            <RouterProvider router={router} />
          </SessionGate>
        </QueryClientProvider>
      </LookProvider>
    </LanguageProvider>
  );
}
