// An editor of one statement: a text area over its coloured text, with names to complete.
import { useRef, useState } from "preact/hooks";
import { t } from "../words/words.ts";
import { colourSql, completeWord, wordBefore } from "./sql-words.ts";

const LINES_MIN = 5;
const LINES_MAX = 24;

export function SqlEditor(props: {
  value: string;
  names: readonly string[];
  onInput: (text: string) => void;
  onRun: () => void;
}) {
  const { value, names, onInput, onRun } = props;
  const area = useRef<HTMLTextAreaElement>(null);
  const [word, setWord] = useState("");
  const lines = Math.min(LINES_MAX, Math.max(LINES_MIN, value.split("\n").length));
  const suggestions = completeWord(word, names);
  const follow = (): void => {
    const element = area.current;
    if (element !== null) setWord(wordBefore(element.value, element.selectionStart));
  };
  const complete = (name: string): void => {
    const element = area.current!;
    const at = element.selectionStart;
    onInput(value.slice(0, at - word.length) + name + value.slice(at));
    setWord("");
    placeCaret(element, at - word.length + name.length);
  };
  return (
    <div class="sql-editor">
      <div class="sql-box" style={{ height: `${lines * 20 + 18}px` }}>
        <Coloured text={value} />
        <textarea
          ref={area}
          data-editor
          class="sql-text"
          aria-label={t("Statement")}
          value={value}
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          onInput={(event) => {
            onInput(event.currentTarget.value);
            follow();
          }}
          onClick={follow}
          onScroll={(event) => scrollTogether(event.currentTarget)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
              event.preventDefault();
              onRun();
            }
            if (event.key === " " && event.ctrlKey && suggestions[0] !== undefined) {
              event.preventDefault();
              complete(suggestions[0]);
            }
          }}
        />
      </div>
      <Names names={suggestions} onChoose={complete} />
    </div>
  );
}

function Coloured({ text: value }: { text: string }) {
  return (
    <pre class="sql-colours" aria-hidden="true">
      {colourSql(value).map(({ text, kind }, index) => (
        <span key={index} class={kind}>
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

// The text of the area follows with the next rendering.
function placeCaret(element: HTMLTextAreaElement, at: number): void {
  requestAnimationFrame(() => {
    element.focus();
    element.setSelectionRange(at, at);
  });
}
