/** What has to be sent so that a machine has these labels and no others. */
export interface Label {
  id: number;
  key: string;
  value: string;
}

/** Null takes a label away. */
export function labelChanges(before: Readonly<Record<string, string>>, after: readonly Label[]): Record<string, string | null> {
  const wanted = new Map(after.filter((one) => one.key.trim()).map((one) => [one.key.trim(), one.value.trim()]));
  const changes: Record<string, string | null> = {};
  for (const [key, value] of wanted) if (before[key] !== value) changes[key] = value;
  for (const key of Object.keys(before)) if (!wanted.has(key)) changes[key] = null;
  return changes;
}
