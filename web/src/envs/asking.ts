/** What is asked of the server about environments, and the wishes it is told. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { api, asked, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { useTell } from "@/look/parts";
import { useLanguage } from "@/words";

export type Env = Schemas["EnvOut"];
export type EnvDetail = Schemas["EnvDetail"];
export type Changes = Record<string, unknown>;

const REASONS_MS = 10_000; // why something waits changes without news

export function useEnvs(everyone: boolean) {
  const { language } = useLanguage();
  return useQuery({
    queryKey: [...keys.envs, "list", everyone, language],
    queryFn: () => asked(api.GET("/api/v1/envs", { params: { query: { all: everyone } } })),
    refetchInterval: REASONS_MS,
  });
}

const detailKey = (ref: string, language: string) => [...keys.envs, "detail", ref, language];
const askDetail = (ref: string) => asked(api.GET("/api/v1/envs/{ref}", { params: { path: { ref } } }));

export function useEnv(ref: string) {
  const { language } = useLanguage();
  return useQuery({ queryKey: detailKey(ref, language), queryFn: () => askDetail(ref), refetchInterval: REASONS_MS });
}

export function useWhy(env: Env) {
  const { language } = useLanguage();
  return useQuery({
    queryKey: keys.workload(env.id, "why", language),
    queryFn: () => asked(api.GET("/api/v1/workloads/{ref}/why", { params: { path: { ref: env.id } } })),
    refetchInterval: REASONS_MS,
    enabled: env.state === "queued",
  });
}

export function useMachines() {
  return useQuery({ queryKey: ["nodes"], queryFn: () => asked(api.GET("/api/v1/nodes")), refetchInterval: REASONS_MS });
}

/** The wishes for one environment. Each answers with it as it then is. */
export function useWishes(env: Pick<Env, "id">) {
  const client = useQueryClient();
  const tell = useTell();
  const params = { path: { ref: env.id } };
  const done = () => client.invalidateQueries({ queryKey: keys.envs });
  const options = { onSettled: done, onError: tell };
  const start = useMutation({ mutationFn: (set: Changes) => asked(api.POST("/api/v1/envs/{ref}/start", { params, body: { set, force: false } })), ...options });
  const stop = useMutation({ mutationFn: () => asked(api.POST("/api/v1/envs/{ref}/stop", { params })), ...options });
  const remove = useMutation({ mutationFn: () => asked(api.DELETE("/api/v1/envs/{ref}", { params })), ...options });
  const timer = useMutation({ mutationFn: (body: Schemas["TimerIn"]) => asked(api.PUT("/api/v1/envs/{ref}/timer", { params, body })), ...options });
  const restart = useMutation({ mutationFn: (set: Changes) => asked(api.POST("/api/v1/envs/{ref}/restart", { params, body: { set, force: false } })), ...options });
  return { start, stop, remove, timer, restart };
}

/** Stopped: it can be started. Whoever wants it stopped while it still ends has to wait; what restarts is not stopped. */
export const isStopped = (env: Pick<Env, "state" | "restarting">): boolean => env.state === "paused" && !env.restarting;
export const isOpen = (env: Pick<Env, "state">): boolean => env.state === "running" || env.state === "starting";
