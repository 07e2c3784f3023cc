// The editor inside a shadow root: CodeMirror with the look of the console. Loaded when an editor is opened.
//
// CodeMirror writes its styles into the root that contains it. In a shadow root it adopts style sheets, which the page's
// Content Security Policy allows; in the document it would add a <style>, which the policy refuses.
import { history, historyKeymap, standardKeymap } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import {
  bracketMatching,
  HighlightStyle,
  indentOnInput,
  indentUnit,
  LRLanguage,
  syntaxHighlighting,
} from "@codemirror/language";
import {
  Annotation,
  Compartment,
  EditorState,
  RangeSet,
  RangeSetBuilder,
  StateEffect,
  StateField,
  type Extension,
} from "@codemirror/state";
import {
  Decoration,
  EditorView,
  GutterMarker,
  gutterLineClass,
  keymap,
  lineNumbers,
  MatchDecorator,
  ViewPlugin,
  type DecorationSet,
  type ViewUpdate,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { parser as htmlParser } from "@lezer/html";
import type { EditorLanguage, EditorProblem } from "./editor-text.ts";

/** Options of an editor. */
interface CodeViewOptions {
  /** Its shadow root contains the editor. */
  host: HTMLElement;
  text: string;
  language: EditorLanguage;
  /** Read by screen readers: name, and how the keyboard leaves it. */
  label: string;
  hint: string;
  /** The user changed the text. */
  onInput: (text: string) => void;
}

const HINT_ID = "hint";
const PLACEHOLDER = /\{\{[^{}\n]{0,200}\}\}\}?|\{%[^{}\n]{0,200}%\}/g;

/** Marks changes that the page made, which it need not be notified of. */
const isFromPage = Annotation.define<boolean>();
const setProblems = StateEffect.define<readonly EditorProblem[]>();

/** One editor. */
export class CodeView {
  readonly #view: EditorView;
  readonly #access = new Compartment();
  #text: string;

  constructor({ host, text, language, label, hint, onInput }: CodeViewOptions) {
    const root = host.shadowRoot ?? host.attachShadow({ mode: "open", delegatesFocus: true });
    const note = document.createElement("span");
    note.id = HINT_ID;
    note.hidden = true;
    note.textContent = hint;
    this.#text = text;
    this.#view = new EditorView({
      root,
      doc: text,
      extensions: [
        lineNumbers(),
        history(),
        bracketMatching(),
        indentOnInput(),
        indentUnit.of("  "),
        EditorView.lineWrapping,
        // Tab and Ctrl+Enter keep their meaning in the page: next control, submit.
        keymap.of([...standardKeymap, ...historyKeymap]),
        createLanguage(language),
        syntaxHighlighting(HIGHLIGHT),
        PROBLEMS,
        THEME,
        EditorView.domEventHandlers({ beforeinput: replaceSelection }),
        this.#access.of([]),
        EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": HINT_ID }),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged) return;
          this.#text = update.state.doc.toString();
          if (!update.transactions.some((one) => one.annotation(isFromPage) === true)) {
            onInput(this.#text);
          }
        }),
      ],
    });
    root.replaceChildren(note, this.#view.dom);
  }

  /** Replaces what differs, so that the cursor and the steps to undo stay. */
  setText(text: string): void {
    if (text === this.#text) return;
    const old = this.#text;
    const shorter = Math.min(old.length, text.length);
    let start = 0;
    while (start < shorter && old[start] === text[start]) start += 1;
    let end = 0;
    while (end < shorter - start && old.at(-1 - end) === text.at(-1 - end)) end += 1;
    this.#view.dispatch({
      changes: { from: start, to: old.length - end, insert: text.slice(start, text.length - end) },
      annotations: isFromPage.of(true),
    });
    // A text with other line ends is the same to the editor.
    this.#text = text;
  }

  /** Marks the lines of the problems. */
  setProblems(problems: readonly EditorProblem[]): void {
    this.#view.dispatch({ effects: setProblems.of(problems) });
  }

  setReadOnly(isReadOnly: boolean): void {
    this.#view.dispatch({
      effects: this.#access.reconfigure(EditorState.readOnly.of(isReadOnly)),
    });
  }

  /** Selects a part and focuses the editor. */
  select(anchor: number, head: number): void {
    const last = this.#view.state.doc.length;
    this.#view.dispatch({
      selection: { anchor: Math.min(anchor, last), head: Math.min(head, last) },
      scrollIntoView: true,
    });
    this.#view.focus();
  }

  destroy(): void {
    this.#view.destroy();
  }
}

/**
 * Types over a selection. Chromium would keep the colours of the removed text by an inline style, which the page's policy
 * refuses and reports.
 */
function replaceSelection(event: InputEvent, view: EditorView): boolean {
  const { data, inputType, isComposing, cancelable } = event;
  const isTyped = inputType === "insertText" && data !== null && !isComposing && cancelable;
  if (!isTyped || view.state.readOnly) return false;
  const { from, to } = readSelection(view);
  if (from === to) return false;
  event.preventDefault();
  view.dispatch({
    changes: { from, to, insert: data },
    selection: { anchor: from + view.state.toText(data).length },
    scrollIntoView: true,
    userEvent: "input.type",
  });
  return true;
}

/** The selection of the document, which the editor reads later than an input can follow. */
function readSelection(view: EditorView): { from: number; to: number } {
  const shadowRoots = [view.root as ShadowRoot];
  const range = document.getSelection()?.getComposedRanges?.({ shadowRoots })[0];
  if (range === undefined || !view.contentDOM.contains(range.startContainer)) {
    return view.state.selection.main;
  }
  return {
    from: view.posAtDOM(range.startContainer, range.startOffset),
    to: view.posAtDOM(range.endContainer, range.endOffset),
  };
}

function createLanguage(language: EditorLanguage): Extension {
  switch (language) {
    case "json":
      return json();
    case "html":
      return [HTML, PLACEHOLDERS];
    case "text":
      return PLACEHOLDERS;
    default:
      return language satisfies never;
  }
}

/** HTML without the languages inside: mails have no scripts. */
const HTML = LRLanguage.define({ name: "html", parser: htmlParser });

const placeholders = new MatchDecorator({
  regexp: PLACEHOLDER,
  decoration: Decoration.mark({ class: "placeholder" }),
});

/** Marks `{{name}}` and `{% if %}` of templates. */
const PLACEHOLDERS = ViewPlugin.define<{
  marks: DecorationSet;
  update: (update: ViewUpdate) => void;
}>(
  (view) => ({
    marks: placeholders.createDeco(view),
    update(update) {
      this.marks = placeholders.updateDeco(update, this.marks);
    },
  }),
  { decorations: ({ marks }) => marks },
);

class ProblemLine extends GutterMarker {
  override readonly elementClass = "problem-line";
}
const PROBLEM_LINE = new ProblemLine();

/** Lines with problems; they move with the text until the page sets others. */
const PROBLEMS = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (lines, { effects, changes, newDoc }) => {
    const set = effects.findLast((one) => one.is(setProblems));
    if (set === undefined) return lines.map(changes);
    return Decoration.set(
      set.value.map((problem) =>
        Decoration.line({
          class: "problem-line",
          attributes: { title: problem.message },
        }).range(newDoc.line(Math.min(Math.max(1, problem.line), newDoc.lines)).from),
      ),
      true,
    );
  },
  provide: (field) => [
    EditorView.decorations.from(field),
    EditorView.contentAttributes.from(field, (lines): Record<string, string> =>
      lines.size === 0 ? {} : { "aria-invalid": "true" },
    ),
    gutterLineClass.compute([field], (state) => {
      const lines = RangeSet.iter([state.field(field)]);
      const markers = new RangeSetBuilder<GutterMarker>();
      for (; lines.value !== null; lines.next()) markers.add(lines.from, lines.from, PROBLEM_LINE);
      return markers.finish();
    }),
  ],
});

const HIGHLIGHT = HighlightStyle.define([
  { tag: [tags.propertyName, tags.attributeName], color: "var(--info)" },
  { tag: [tags.string, tags.attributeValue], color: "var(--accent)" },
  { tag: [tags.number, tags.bool, tags.null, tags.character], color: "var(--mail)" },
  { tag: tags.tagName, color: "var(--identity)" },
  {
    tag: [tags.punctuation, tags.separator, tags.bracket, tags.comment, tags.documentMeta],
    color: "var(--ink-3)",
  },
  { tag: tags.invalid, color: "var(--bad)" },
]);

/** Tokens of the page are inherited into the shadow root: both themes are one. */
const THEME = EditorView.theme({
  "&": {
    font: "var(--t-code)",
    color: "var(--ink)",
    backgroundColor: "var(--raise)",
    border: "1px solid var(--line-strong)",
    borderRadius: "var(--r2)",
  },
  "&.cm-focused": { outline: "2px solid var(--focus)", outlineOffset: "1px" },
  ".cm-scroller": {
    font: "inherit",
    maxHeight: "calc(var(--editor-lines-max) * 18px + 16px)",
    overflow: "auto",
  },
  ".cm-content, .cm-gutter": { minHeight: "calc(var(--editor-lines-min) * 18px + 16px)" },
  "& .cm-content": { padding: "8px 0", caretColor: "var(--ink)" },
  ".cm-line": { padding: "0 9px" },
  "& .cm-gutters": {
    color: "var(--ink-3)",
    backgroundColor: "var(--well)",
    border: "0",
    borderRadius: "var(--r2) 0 0 var(--r2)",
  },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--select)" },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "var(--bad-wash)" },
  ".placeholder": { color: "var(--messaging)" },
  ".cm-line.problem-line": { backgroundColor: "var(--bad-wash)" },
  ".cm-gutterElement.problem-line": {
    color: "var(--bad)",
    fontWeight: "600",
    textDecoration: "underline wavy",
  },
  "& ::selection": { backgroundColor: "var(--accent-strong)" },
});
