/** Words in both languages, side by side: `{ "jobs.stop": ["Stop", "停止"] }`. What lacks one of the two does not compile. */
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useState } from "react";

export type Language = "en" | "zh";
export type Pair = readonly [en: string, zh: string];
export type Facts = Readonly<Record<string, string | number | null | undefined>>;

const KEPT_AS = "yard.language";

export function firstLanguage(kept: string | null, preferred: readonly string[]): Language {
  if (kept === "en" || kept === "zh") return kept;
  return preferred.some((tag) => tag.toLowerCase().startsWith("zh")) ? "zh" : "en";
}

/** `{name}` in a sentence is replaced by the fact of that name, `{n|job|jobs}` by the word that fits the number. */
export function fill(sentence: string, facts: Facts = {}): string {
  return sentence.replace(/\{(\w+)(?:\|([^|}]*)\|([^|}]*))?\}/g, (whole, key: string, one?: string, many?: string) => {
    if (!(key in facts)) return whole;
    if (one !== undefined && many !== undefined) return Number(facts[key]) === 1 ? one : many;
    return String(facts[key] ?? "");
  });
}

interface Speaking {
  language: Language;
  speak: (language: Language) => void;
}

const LanguageContext = createContext<Speaking>({ language: "en", speak: () => undefined });

const keptLanguage = (): Language => firstLanguage(localStorage.getItem(KEPT_AS), navigator.languages);

/** For code outside of React, such as requests, which tell the server the language of its reasons. */
export const currentLanguage = keptLanguage;

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, setLanguage] = useState<Language>(keptLanguage);
  useEffect(() => {
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  }, [language]);
  const speaking = useMemo(
    () => ({
      language,
      speak: (wish: Language) => {
        localStorage.setItem(KEPT_AS, wish);
        setLanguage(wish);
      },
    }),
    [language],
  );
  return <LanguageContext.Provider value={speaking}>{children}</LanguageContext.Provider>;
}

export const useLanguage = (): Speaking => useContext(LanguageContext);

/** `const say = useWords(words); say("jobs.stop", { name })` */
export function useWords<Key extends string>(words: Readonly<Record<Key, Pair>>): (key: Key, facts?: Facts) => string {
  const { language } = useLanguage();
  return useCallback((key, facts) => fill(words[key][language === "zh" ? 1 : 0], facts), [words, language]);
}
