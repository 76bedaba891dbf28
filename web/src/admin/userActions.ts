/** What an admin does to somebody's account. What is lost by it is asked about first. */
import { api, asked, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { useConfirm } from "@/look/parts";
import { useWords } from "@/words";
import { useAct } from "./parts";
import { adminWords } from "./words";

type Change = Schemas["UserChange"];

export function useUserActions(user: Schemas["UserOut"], onSecret: (password: string) => void) {
  const say = useWords(adminWords);
  const confirm = useConfirm();
  const { name } = user;
  const params = { path: { name } };
  const touched = [keys.people()];
  const change = useAct((wish: Change) => asked(api.PATCH("/api/v1/users/{name}", { params, body: wish })), touched);
  const reset = useAct(() => asked(api.POST("/api/v1/users/{name}/password", { params, body: { keep_tokens: false } })), touched);
  const remove = useAct(() => asked(api.DELETE("/api/v1/users/{name}", { params })), touched);
  return {
    setAdmin: async (admin: boolean) => {
      const ask = admin
        ? { title: say("makeAdminTitle", { name }), lost: say("makeAdminLost"), ok: say("makeAdmin") }
        : { title: say("takeAdminTitle", { name }), lost: say("takeAdminLost", { name }), ok: say("takeAdmin") };
      if (await confirm(ask)) change.mutate({ admin });
    },
    setActive: async (active: boolean) => {
      const ask = { title: say("disableTitle", { name }), lost: say("disableLost", { name }), ok: say("disable") };
      if (active || (await confirm(ask))) change.mutate({ active });
    },
    reset: async () => {
      const ask = { title: say("resetTitle", { name }), lost: say("resetLost", { name }), ok: say("resetPassword") };
      if (await confirm(ask)) reset.mutate(undefined, { onSuccess: (told) => told.password && onSecret(told.password) });
    },
    remove: async () => {
      const ask = { title: say("removeUserTitle", { name }), lost: say("removeUserLost"), ok: say("remove") };
      if (await confirm(ask)) remove.mutate(undefined);
    },
  };
}
