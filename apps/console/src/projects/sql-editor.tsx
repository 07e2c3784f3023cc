// An editor of one statement: a text area over its coloured text, with names to complete.
import { useRef, useState } from "preact/hooks";
import { t } from "../words/words.ts";
import { colourSql, completeWord, findFaultEnd, markFault, wordBefore } from "./sql-words.ts";

const LINES_MIN = 5;
const LINES_MAX = 24;

export function SqlEditor(props: {
  value: string;
  names: readonly string[];
  /** Offset of a fault in the text. */
  fault: number | undefined;
  onInput: (text: string) => void;
  onRun: () => void;
}) {
  const { value, names, fault, onInput, onRun } = props;
  const area = useRef<HTMLTextAreaElement>(null);
  const [word, setWord] = useState("");
  const suggestions = completeWord(word, names);
  const follow = (): void => {
    const element = area.current;
    if (element !== null) setWord(wordBefore(element.value, element.selectionStart));
  };
  const complete = (name: string): void => {
    const element = area.current!;
    const at = element.selectionStart;
    // At once: the next key follows it.
    element.value = value.slice(0, at - word.length) + name + value.slice(at);
    onInput(element.value);
    setWord("");
    select(element, at - word.length + name.length);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const [first] = suggestions;
    const runs = event.key === "Enter" && (event.ctrlKey || event.metaKey);
    if (runs) onRun();
    else if (event.key === " " && event.ctrlKey && first !== undefined) complete(first);
    else return;
    event.preventDefault();
  };
  return (
    <div class="sql-editor">
      <div class="sql-box" style={{ height: `${countLines(value) * 20 + 18}px` }}>
        <Coloured text={value} fault={fault} />
        <textarea
          ref={area}
          data-editor
          class="sql-text"
          aria-label={t("Statement")}
          placeholder={names[0] === undefined ? undefined : `select * from ${names[0]}`}
          value={value}
          aria-invalid={fault === undefined ? undefined : "true"}
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          onInput={(event) => {
            onInput(event.currentTarget.value);
            follow();
          }}
          onClick={follow}
          onScroll={(event) => scrollTogether(event.currentTarget)}
          onKeyDown={onKeyDown}
        />
      </div>
      <Place value={value} fault={fault} onSelect={(...at) => select(area.current!, ...at)} />
      <Names names={suggestions} onChoose={complete} />
    </div>
  );
}

function countLines(value: string): number {
  return Math.min(LINES_MAX, Math.max(LINES_MIN, value.split("\n").length));
}

function describePlace(value: string, at: number): string {
  const lines = value.slice(0, at).split("\n");
  return t("Line {line}, column {column}", {
    line: lines.length,
    column: lines.at(-1)!.length + 1,
  });
}

/** The place of a fault, which selects it. */
function Place(props: {
  value: string;
  fault: number | undefined;
  onSelect: (at: number, end: number) => void;
}) {
  const { value, fault, onSelect } = props;
  if (fault === undefined) return null;
  return (
    <p class="sql-place">
      <button
        type="button"
        class="link"
        onClick={() => onSelect(fault, findFaultEnd(value, fault))}
      >
        {describePlace(value, fault)}
      </button>
    </p>
  );
}

function Coloured({ text: value, fault }: { text: string; fault: number | undefined }) {
  return (
    <pre class="sql-colours" aria-hidden="true">
      {markFault(colourSql(value), fault).map(({ text, kind, isFault }, index) => (
        <span key={index} class={isFault ? `${kind} sql-fault` : kind}>
          {text}
        </span>
      ))}
      {"\n"}
    </pre>
  );
}

function Names(props: { names: readonly string[]; onChoose: (name: string) => void }) {
  const { names: suggestions, onChoose: complete } = props;
  return (
    <div class="sql-names" aria-label={t("Names to complete")} role="group">
      {suggestions.map((name) => (
        <button key={name} type="button" class="btn sm q mono" onClick={() => complete(name)}>
          {name}
        </button>
      ))}
    </div>
  );
}

function scrollTogether({ previousElementSibling, scrollTop, scrollLeft }: HTMLElement): void {
  previousElementSibling?.scrollTo(scrollLeft, scrollTop);
}

function select(element: HTMLTextAreaElement, at: number, end = at): void {
  element.focus();
  element.setSelectionRange(at, end);
}
