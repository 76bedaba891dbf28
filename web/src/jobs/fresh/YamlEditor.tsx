/** The job file as text, with keys completed and explained by its schema, and problems at their lines. Loaded when used. */
import { autocompletion, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { yaml } from "@codemirror/lang-yaml";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintGutter, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Extension } from "@codemirror/state";
import { EditorView, hoverTooltip } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { basicSetup } from "codemirror";
import { useEffect, useRef, useState } from "react";
import type { Problem } from "@/api/client";
import { useLook } from "@/look/theme";
import { aboutAt, keysAt, pathAbove, type Schema, valuesAt } from "./help";
import { placeOf, positionOf } from "./problems";

interface Props {
  text: string;
  write: (text: string) => void;
  problems: readonly Problem[];
  schema: Schema | undefined;
  label: string;
}

const KEY_BEFORE = /^(\s*)([\w.-]*)$/;
const VALUE_BEFORE = /^(\s*)([A-Za-z_][\w.-]*):\s+(\S*)$/;
const KEY_HERE = /^(\s*)([A-Za-z_][\w.-]*)\s*:/;

function complete(context: CompletionContext, schema: Schema): CompletionResult | null {
  const line = context.state.doc.lineAt(context.pos);
  const lines = context.state.doc.toString().split("\n");
  const before = line.text.slice(0, context.pos - line.from);
  const value = VALUE_BEFORE.exec(before);
  if (value) {
    const [, indent = "", key = "", typed = ""] = value;
    const found = valuesAt(schema, [...pathAbove(lines, line.number - 1, indent.length), key]);
    return found.length > 0 ? { from: context.pos - typed.length, options: found.map((label): Completion => ({ label, type: "constant" })) } : null;
  }
  const key = KEY_BEFORE.exec(before);
  if (!key || (key[2] === "" && !context.explicit)) return null;
  const [, indent = "", typed = ""] = key;
  const path = pathAbove(lines, line.number - 1, indent.length);
  const present = new Set(lines.map((text) => KEY_HERE.exec(text)).filter((one) => one && one[1] === indent).map((one) => one?.[2] ?? ""));
  const options = keysAt(schema, path, present).map(({ label, about }): Completion => ({ label, info: about, type: "property", apply: `${label}: ` }));
  return { from: context.pos - typed.length, options };
}

function explain(schema: Schema) {
  return hoverTooltip((view, pos) => {
    const line = view.state.doc.lineAt(pos);
    const key = KEY_HERE.exec(line.text);
    if (!key) return null;
    const [, indent = "", name = ""] = key;
    const about = aboutAt(schema, [...pathAbove(view.state.doc.toString().split("\n"), line.number - 1, indent.length), name]);
    if (!about) return null;
    return {
      pos: line.from + indent.length,
      end: line.from + indent.length + name.length,
      create: () => {
        const dom = document.createElement("div");
        dom.textContent = about;
        dom.style.cssText = "padding: 6px 10px; max-width: 420px";
        return { dom };
      },
    };
  });
}

const COLOURS = EditorView.theme({
  "&": { fontSize: "13px", color: "var(--text)", backgroundColor: "var(--surface)" },
  ".cm-gutters": { backgroundColor: "var(--ground)", color: "var(--quiet)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--mark) 8%, transparent)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-tooltip": { backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--line)" },
  ".cm-scroller": { overflow: "auto", fontFamily: "ui-monospace, Menlo, Consolas, monospace" },
});

/** The usual colours are made for a light ground; these hold on both. */
const INKS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--mark)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.keyword, tags.meta, tags.labelName, tags.typeName], color: "var(--warn)" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

/** What may change while somebody writes. The editor stays: one made anew could lose what was just typed. */
function changing(schema: Schema, dark: boolean, label: string): Extension {
  return [
    EditorView.darkTheme.of(dark),
    EditorView.contentAttributes.of({ "aria-label": label }),
    autocompletion({ override: [(context) => complete(context, schema)] }),
    explain(schema),
  ];
}

export default function YamlEditor({ text, write, problems, schema, label }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const told = useRef(write);
  const first = useRef(text);
  const [part] = useState(() => new Compartment());
  const { dark } = useLook();
  useEffect(() => {
    told.current = write;
  }, [write]);

  useEffect(() => {
    if (!box.current) return undefined;
    const made = new EditorView({
      parent: box.current,
      state: EditorState.create({
        doc: first.current,
        extensions: [
          basicSetup,
          yaml(),
          lintGutter(),
          COLOURS,
          syntaxHighlighting(INKS),
          part.of([]),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) told.current(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = made;
    return () => {
      first.current = made.state.doc.toString();
      made.destroy();
      view.current = null;
    };
  }, [part]);

  useEffect(() => {
    view.current?.dispatch({ effects: part.reconfigure(changing(schema ?? {}, dark, label)) });
  }, [part, schema, dark, label]);

  // A change from outside, such as an offer that was taken.
  useEffect(() => {
    const now = view.current;
    if (now && now.state.doc.toString() !== text) now.dispatch({ changes: { from: 0, to: now.state.doc.length, insert: text } });
  }, [text]);

  useEffect(() => {
    const now = view.current;
    if (!now) return;
    const doc = now.state.doc.toString();
    const found = problems.map((problem): Diagnostic => {
      const [from, to] = positionOf(doc, placeOf(problem) ?? { line: 1, column: 1 });
      return { from, to, severity: "error", message: problem.message };
    });
    now.dispatch(setDiagnostics(now.state, found));
  }, [problems]);

  return <div ref={box} className="editor" />;
}
