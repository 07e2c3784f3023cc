// Modal dialogs: forms, and the confirmation of destructive actions by a typed name.
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { ApiFailure } from "../api/api.ts";
import { useUnsaved } from "../router/unsaved.ts";
import { t } from "../words/words.ts";
import { Icon } from "./icon.tsx";
import { FormProblems } from "./controls.tsx";
import { toFailure } from "./load.ts";
import { Problem } from "./problem.tsx";

/** Answer of a form's step that is not its last one. */
export const STAY_OPEN = Symbol("stay open");

const NO_PROBLEMS: ApiFailure["fields"] = [];
const FIRST_FIELD = ".dialog-body :is(input, select, textarea, [data-editor])";

/** Properties of a dialog. */
interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  isWide?: boolean;
  /** True while nothing may close it. */
  isHeld?: boolean;
}

/** A modal dialog; Escape closes it, and the focus returns. */
export function Dialog({ title, onClose, children, isWide = false, isHeld = false }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const close = (): void => {
    if (!isHeld) onClose();
  };
  // Before the paint: the next key belongs to the dialog.
  useLayoutEffect(() => {
    const dialog = ref.current;
    if (dialog === null || dialog.open) return;
    dialog.showModal();
    // Otherwise the focus would be on the button that closes it.
    dialog.querySelector<HTMLElement>(FIRST_FIELD)?.focus();
  }, []);
  return (
    <dialog
      ref={ref}
      class={isWide ? "dialog dialog-wide" : "dialog"}
      aria-labelledby={titleId}
      onClose={() => {
        close();
        // The browser closes it at the second Escape, whatever the page says: it is shown again if it is still needed.
        setTimeout(() => {
          if (ref.current?.open === false) ref.current.showModal();
        });
      }}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <header class="dialog-head">
        <h2 id={titleId}>{title}</h2>
        <button
          type="button"
          class="icon-btn"
          aria-label={t("Close")}
          disabled={isHeld}
          onClick={close}
        >
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  );
}

/** Properties of a form in a dialog. */
interface FormDialogProps {
  title: string;
  submit: string;
  isDestructive?: boolean;
  isDisabled?: boolean;
  isWide?: boolean;
  onClose: () => void;
  /** Rejections are shown in the dialog, which stays open; also after an answer of `STAY_OPEN`. */
  onSubmit: () => Promise<unknown>;
  /** True if the answer contains a secret: the page is not left without a question meanwhile. */
  createsSecret?: boolean | undefined;
  children: ComponentChildren;
}

/** A form in a dialog, which stays open until its request is answered. */
export function FormDialog(props: FormDialogProps) {
  const { title, submit, onClose, onSubmit, children, isDestructive = false } = props;
  const [failure, setFailure] = useState<ApiFailure | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  useUnsaved(isBusy && props.createsSecret === true);
  const run = async (): Promise<void> => {
    setBusy(true);
    try {
      if ((await onSubmit()) === STAY_OPEN) setFailure(undefined);
      else onClose();
    } catch (error) {
      setFailure(toFailure(error));
    } finally {
      setBusy(false);
    }
  };
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    const submitByKey = (event: KeyboardEvent): void => {
      // Enter alone belongs to text areas.
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      form.current?.requestSubmit();
    };
    const element = form.current;
    element?.addEventListener("keydown", submitByKey);
    return () => element?.removeEventListener("keydown", submitByKey);
  }, []);
  return (
    <Dialog title={title} onClose={onClose} isWide={props.isWide ?? false} isHeld={isBusy}>
      <form
        ref={form}
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isBusy && props.isDisabled !== true) void run();
        }}
      >
        <div class="dialog-body">
          <FormProblems.Provider value={failure?.fields ?? NO_PROBLEMS}>
            {children}
          </FormProblems.Provider>
          {failure !== undefined && <Problem failure={failure} />}
        </div>
        <footer class="dialog-foot">
          <button type="button" class="btn" disabled={isBusy} onClick={onClose}>
            {t("Cancel")}
          </button>
          <button
            type="submit"
            class={isDestructive ? "btn bad-solid" : "btn pri"}
            disabled={isBusy || props.isDisabled === true}
          >
            {submit}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/** Confirms a destructive action: says what will be gone, and requires the name. */
export function ConfirmDialog(props: {
  title: string;
  name: string;
  submit: string;
  isDisabled?: boolean;
  children: ComponentChildren;
  onClose: () => void;
  onSubmit: () => Promise<unknown>;
  createsSecret?: boolean;
}) {
  const [typed, setTyped] = useState("");
  return (
    <FormDialog
      title={props.title}
      submit={props.submit}
      isDestructive
      isDisabled={typed !== props.name || props.isDisabled === true}
      onClose={props.onClose}
      onSubmit={props.onSubmit}
      createsSecret={props.createsSecret}
    >
      <div class="lead">{props.children}</div>
      <label class="label">
        <span>
          {t("Type")} <code>{props.name}</code> {t("to confirm")}
        </span>
        <input
          class="field mono"
          value={typed}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
      </label>
    </FormDialog>
  );
}
