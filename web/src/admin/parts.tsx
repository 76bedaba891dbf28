/** Pieces that the pages of administration share. */
import { type QueryKey, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Alert, type FormInstance, Modal } from "antd";
import type { ReactNode } from "react";
import { useSearchParams } from "react-router-dom";
import { api, asked, atItsField, Refusal } from "@/api/client";
import { keys } from "@/api/news";
import { CopyText, Nothing, useTell } from "@/look/parts";
import { useSession } from "@/session/session";
import { useWords } from "@/words";
import { adminWords } from "./words";

export function useLeads(): readonly string[] {
  const { who } = useSession();
  return who.user.memberships.filter((one) => one.role === "lead").map((one) => one.group);
}

/** Pages that are not for everybody say so, instead of failing. */
export function ForAdmins({ leadsToo = false, children }: { leadsToo?: boolean; children: ReactNode }) {
  const say = useWords(adminWords);
  const { who } = useSession();
  const leads = useLeads();
  if (who.user.admin || (leadsToo && leads.length > 0)) return <div className="page stack">{children}</div>;
  return <div className="page"><Nothing title={say(leadsToo ? "onlyLeads" : "onlyAdmins")} /></div>;
}

export const useUsers = () => useQuery({ queryKey: keys.people("users"), queryFn: () => asked(api.GET("/api/v1/users")) });
export const useGroups = () => useQuery({ queryKey: keys.people("groups"), queryFn: () => asked(api.GET("/api/v1/groups")) });

/** Something is asked of the server; what it touches is loaded again. A form shows refusals itself (`quiet`). */
export function useAct<Wish, Told>(act: (wish: Wish) => Promise<Told>, touched: readonly QueryKey[], quiet = false) {
  const client = useQueryClient();
  const tell = useTell();
  return useMutation({
    mutationFn: act,
    onError: (error) => quiet || tell(error),
    onSuccess: () => Promise.all(touched.map((queryKey) => client.invalidateQueries({ queryKey }))),
  });
}

/** Puts what the server found wrong at its fields. Returns what belongs to none of them. */
export function atFields(form: FormInstance, error: unknown, fields: readonly string[]): string[] {
  if (!(error instanceof Refusal)) return [error instanceof Error ? error.message : String(error)];
  const problems = error.problems.length > 0 ? error.problems : [{ code: error.code, message: error.message, facts: error.facts }];
  const rest: string[] = [];
  for (const problem of problems) {
    const at = String(problem.facts["at"] ?? problem.facts["key"] ?? (error.code === "refused.already_there" ? "name" : ""));
    const field = fields.find((one) => at === one || at.endsWith(`.${one}`));
    if (field) form.setFields([{ name: field, errors: [atItsField(problem)] }]);
    else rest.push(problem.message);
  }
  return rest;
}

/** The rest of what was wrong, above the form. */
export function Rest({ messages }: { messages: readonly string[] }) {
  if (messages.length === 0) return null;
  return <Alert type="error" showIcon role="alert" title={messages.join(" ")} style={{ marginBottom: 12 }} />;
}

/** A secret, shown this once: it lives in the state of the page and nowhere else. */
export function OneTimePassword({ name, password, onClose }: { name: string; password: string | null; onClose: () => void }) {
  const say = useWords(adminWords);
  return (
    <Modal
      open={password !== null}
      title={say("oneTime")}
      onCancel={onClose}
      onOk={onClose}
      okText={say("done")}
      cancelButtonProps={{ style: { display: "none" } }}
      destroyOnHidden
    >
      <p>{say("userAdded", { name })}</p>
      {password && <p style={{ fontSize: 18 }}><CopyText text={password} label={say("oneTime")} /></p>}
      <Alert type="warning" showIcon title={say("shownOnce", { name })} />
    </Modal>
  );
}

/** Filters live in the address, so that what is seen can be shared. */
export function useFilters<Key extends string>(names: readonly Key[]): [Partial<Record<Key, string>>, (key: Key, value: string | undefined) => void] {
  const [params, setParams] = useSearchParams();
  const filters: Partial<Record<Key, string>> = {};
  for (const name of names) {
    const value = params.get(name);
    if (value) filters[name] = value;
  }
  const set = (key: Key, value: string | undefined) =>
    setParams((before) => {
      const after = new URLSearchParams(before);
      if (value) after.set(key, value);
      else after.delete(key);
      return after;
    }, { replace: true });
  return [filters, set];
}
