// An editor of code. Its program is loaded when the first one is shown; until then, without it, and for texts that are too
// large for it, the text is in a plain text area.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { RefObject } from "preact";
import { t } from "../words/words.ts";
import type { CodeView } from "./code-view.ts";
import { findOffset, type EditorLanguage, type EditorProblem } from "./editor-text.ts";

/** Characters above which a text is edited without colours. */
const COLOURED_MAX = 1_048_576;
const SHOWN_PROBLEMS_MAX = 20;

/** Properties of an editor. */
interface CodeEditorProps {
  label: string;
  /** A value that is not the last input replaces the text; the steps to undo stay. */
  value: string;
  onInput: (text: string) => void;
  language: EditorLanguage;
  problems?: readonly EditorProblem[];
  readOnly?: boolean;
  /** Height: as many lines as the text has, between these. */
  minLines?: number;
  maxLines?: number;
}

interface Program {
  CodeView: typeof CodeView;
}

/** The program of editors, once it is loaded. */
let program: Program | undefined;

/** An editor of code and the list of its problems. Tab leaves it, as it leaves any field. */
export function CodeEditor(props: CodeEditorProps) {
  const { label, value, language, problems = [], readOnly = false } = props;
  const { minLines = 6, maxLines = 28 } = props;
  const area = useRef<HTMLTextAreaElement>(null);
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<CodeView | undefined>(undefined);
  const onInput = useRef(props.onInput);
  onInput.current = props.onInput;
  const id = useId();
  const { loaded, takeSelection } = useProgram(area);
  const isColoured = loaded !== undefined && value.length <= COLOURED_MAX;

  useLayoutEffect(() => {
    if (!isColoured) return undefined;
    const made = new loaded.CodeView({
      host: host.current!,
      text: value,
      language,
      label,
      hint: t("Tab leaves the editor."),
      onInput: (text) => onInput.current(text),
    });
    view.current = made;
    const selection = takeSelection();
    if (selection !== undefined) made.select(...selection);
    return () => {
      made.destroy();
      view.current = undefined;
    };
  }, [isColoured, language, label]);
  // Before the next key: a later effect would replace what is typed meanwhile.
  useLayoutEffect(() => view.current?.setText(value), [value]);
  useLayoutEffect(() => view.current?.setReadOnly(readOnly), [readOnly, isColoured, language]);
  const places = JSON.stringify(problems);
  useLayoutEffect(() => view.current?.setProblems(problems), [places, isColoured, language]);
  useLayoutEffect(() => {
    host.current?.style.setProperty("--editor-lines-min", String(minLines));
    host.current?.style.setProperty("--editor-lines-max", String(maxLines));
  }, [minLines, maxLines, isColoured]);

  const goTo = (problem: EditorProblem): void => {
    const at = findOffset(value, problem);
    view.current?.select(at, at);
    area.current?.setSelectionRange(at, at);
    area.current?.focus();
  };
  return (
    <div class="editor">
      <label class="label" for={id}>
        {label}
      </label>
      {isColoured ? (
        <div ref={host} data-editor />
      ) : (
        <textarea
          ref={area}
          id={id}
          class="field mono area"
          rows={Math.min(maxLines, Math.max(minLines, value.split("\n", maxLines).length))}
          spellcheck={false}
          readOnly={readOnly}
          aria-invalid={problems.length > 0 ? "true" : undefined}
          value={value}
          onInput={(event) => props.onInput(event.currentTarget.value)}
        />
      )}
      <ProblemList problems={problems} onSelect={goTo} />
    </div>
  );
}

/** Loads the program. The selection of a text area that is being edited moves into the editor. */
function useProgram(area: RefObject<HTMLTextAreaElement | null>): {
  loaded: Program | undefined;
  takeSelection: () => [anchor: number, head: number] | undefined;
} {
  const [loaded, setLoaded] = useState(program);
  const selection = useRef<[anchor: number, head: number] | undefined>(undefined);
  useEffect(() => {
    if (loaded !== undefined) return undefined;
    let isGone = false;
    const load = async (): Promise<void> => {
      try {
        program = await import("./code-view.ts");
      } catch {
        // The text area does without; the next editor tries again.
        return;
      }
      if (isGone) return;
      const field = area.current;
      if (field !== null && document.activeElement === field) {
        selection.current = [field.selectionStart, field.selectionEnd];
      }
      setLoaded(program);
    };
    void load();
    return () => {
      isGone = true;
    };
  }, []);
  const takeSelection = (): [anchor: number, head: number] | undefined => {
    const taken = selection.current;
    selection.current = undefined;
    return taken;
  };
  return { loaded, takeSelection };
}

function ProblemList(props: {
  problems: readonly EditorProblem[];
  onSelect: (problem: EditorProblem) => void;
}) {
  const { problems, onSelect } = props;
  const more = problems.length - SHOWN_PROBLEMS_MAX;
  return (
    <ul class="editor-problems" aria-live="polite">
      {problems.slice(0, SHOWN_PROBLEMS_MAX).map((problem) => {
        const { line, column, message } = problem;
        return (
          <li key={`${line}:${column ?? ""} ${message}`}>
            <button type="button" class="link" onClick={() => onSelect(problem)}>
              {column === undefined
                ? t("Line {line}", { line })
                : t("Line {line}, column {column}", { line, column })}
            </button>
            {`: ${message}`}
          </li>
        );
      })}
      {more > 0 && <li>{t("{n} more problems", { n: more })}</li>}
    </ul>
  );
}
