/** Quotas as people write them, and what of them has to be sent. */
import type { Schemas } from "@/api/client";

export type Group = Schemas["GroupOut"];
export type QuotaLine = Schemas["QuotaOut"];
export const RESOURCES = ["nvidia", "ascend", "cpu", "memory"] as const;
export type Resource = (typeof RESOURCES)[number];
export const isCard = (resource: string): boolean => resource === "nvidia" || resource === "ascend";

const GIB = 2 ** 30;

/** As the server reads it back without loss: memory in the largest whole unit. */
export function written(resource: string, amount: number | null): string {
  if (amount === null) return "";
  if (resource !== "memory" || amount === 0) return String(amount);
  for (const [unit, size] of [["T", GIB * 1024], ["G", GIB], ["M", 2 ** 20], ["K", 1024]] as const) {
    if (amount % size === 0) return `${amount / size}${unit}`;
  }
  return String(amount);
}

export interface Draft {
  limit: string;
  guaranteed: string;
}

export function lineOf(group: Group, resource: string, user: string | null = null): QuotaLine | undefined {
  return group.quotas.find((one) => one.resource === resource && one.user === user);
}

export const usedOf = (group: Group, resource: string): number => group.used?.[resource] ?? 0;

export function draftOf(group: Group, resource: string): Draft {
  const line = lineOf(group, resource);
  return { limit: written(resource, line?.limit ?? null), guaranteed: line?.guaranteed ? written(resource, line.guaranteed) : "" };
}

type Amounts = Partial<Record<Resource, string | null>>;

/** Only what is different; null takes a limit or a guarantee away. Undefined: nothing changed. */
export function quotaChanges(group: Group, drafts: Readonly<Record<string, Draft>>): { limits?: Amounts; guarantees?: Amounts } | undefined {
  const limits: Amounts = {};
  const guarantees: Amounts = {};
  for (const resource of RESOURCES) {
    const before = draftOf(group, resource);
    const after = drafts[resource] ?? before;
    if (after.limit.trim() !== before.limit) limits[resource] = after.limit.trim() || null;
    if (after.guaranteed.trim() !== before.guaranteed) guarantees[resource] = after.guaranteed.trim() || null;
  }
  const told = { ...(Object.keys(limits).length > 0 && { limits }), ...(Object.keys(guarantees).length > 0 && { guarantees }) };
  return Object.keys(told).length > 0 ? told : undefined;
}

/** `quota.nvidia: ...` and `limits.nvidia: ...` are both about the limit of nvidia. */
export function problemAt(at: string): { resource: string; part: keyof Draft } | null {
  const [place, resource] = at.split(".");
  if (!resource || !(RESOURCES as readonly string[]).includes(resource)) return null;
  return { resource, part: place === "guarantees" ? "guaranteed" : "limit" };
}
