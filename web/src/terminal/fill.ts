/** `{name}` in a sentence is replaced by the fact of that name. Apart from the console's own, which brings React along. */
export function fill(sentence: string, facts: Readonly<Record<string, string | number>>): string {
  return sentence.replace(/\{(\w+)\}/g, (whole, key: string) => (key in facts ? String(facts[key]) : whole));
}
