// The field in a cell that is being edited: Enter saves, Tab saves and goes on, Escape leaves the value as it was.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../words/words.ts";
import { type Cell, editableText } from "./data.ts";

/** Properties of the field. */
interface CellEditorProps {
  column: string;
  value: Cell;
  takesNull: boolean;
  isBusy: boolean;
  /** `step` is where to go after it: to the next or the former cell, or nowhere. */
  onSave: (text: string | null, step: -1 | 0 | 1) => void;
  onCancel: () => void;
}

export function CellEditor(props: CellEditorProps) {
  const { column, value, takesNull, isBusy, onSave, onCancel } = props;
  const [text, setText] = useState(editableText(value) ?? "");
  // An empty field of null that nobody has touched stays null.
  const [isTouched, setTouched] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  const finish = (step: -1 | 0 | 1): void => {
    if (isTouched || step !== 0) onSave(isTouched || value !== null ? text : null, step);
    else onCancel();
  };
  return (
    <span class="cell-editor">
      <input
        ref={field}
        class="cell-field"
        aria-label={t("New value of {name}", { name: column })}
        value={text}
        placeholder={value === null ? "null" : ""}
        readOnly={isBusy}
        autocomplete="off"
        spellcheck={false}
        onClick={(event) => event.stopPropagation()}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setTouched(true);
        }}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (isBusy) return;
          if (event.key === "Enter") finish(0);
          else if (event.key === "Escape") onCancel();
          else if (event.key === "Tab") finish(event.shiftKey ? -1 : 1);
          else return;
          event.preventDefault();
        }}
      />
      {takesNull && value !== null && (
        <button
          type="button"
          class="btn sm q"
          disabled={isBusy}
          onClick={(event) => {
            event.stopPropagation();
            onSave(null, 0);
          }}
        >
          null
        </button>
      )}
    </span>
  );
}
