// Short messages, and actions that can be undone before they happen.
import { signal } from "@preact/signals";
import { t } from "../words/words.ts";
import { toFailure } from "./load.ts";
import { Problem } from "./problem.tsx";
import { type ApiFailure, outlivePage } from "../api/api.ts";

const SHOWN_MS = 5_000;
const UNDO_MS = 8_000;
const TOASTS_MAX = 4;

interface Toast {
  id: number;
  text: string;
  failure?: ApiFailure;
  undo?: () => void;
}

const toasts = signal<readonly Toast[]>([]);
let lastId = 0;

/** Shows a message for some seconds. */
export function say(text: string): void {
  const id = add({ text });
  setTimeout(() => remove(id), SHOWN_MS);
}

/** Shows a failure until it is closed. */
function sayFailure(error: unknown): void {
  const failure = toFailure(error);
  // The dialog for a new sign-in explains these.
  if (failure.reason === "recent_sign_in_required") return;
  add({ text: "", failure });
}

/** Runs an action and reports its failure; true if it succeeded. */
export async function attempt(work: () => Promise<unknown>, done?: string): Promise<boolean> {
  try {
    await work();
  } catch (error) {
    sayFailure(error);
    return false;
  }
  if (done !== undefined) say(done);
  return true;
}

/** An action that can be undone. */
interface UndoableAction {
  /** Identifies what the action changes: a second click while it waits does nothing. */
  key: string;
  text: string;
  run: () => Promise<unknown>;
  onUndone?: () => void;
}

/** Actions that can still be undone, by key. */
const waiting = new Map<string, () => Promise<void>>();

/** Runs an action after 8 s unless the user undoes it; immediately if the page is closed or the user signs out. */
export function runUnlessUndone({ key, text, run, onUndone }: UndoableAction): void {
  if (waiting.has(key)) return;
  const settle = (): void => {
    clearTimeout(timer);
    waiting.delete(key);
    remove(id);
  };
  const complete = async (): Promise<void> => {
    settle();
    await attempt(run);
  };
  const timer = setTimeout(() => void complete(), UNDO_MS);
  waiting.set(key, complete);
  const id = add({
    text,
    undo: () => {
      settle();
      onUndone?.();
    },
  });
}

/** Runs all actions that can still be undone. */
export async function runWaiting(): Promise<void> {
  await Promise.all([...waiting.values()].map((complete) => complete()));
}

addEventListener("pagehide", () => outlivePage(() => void runWaiting()));

function add(toast: Omit<Toast, "id">): number {
  lastId += 1;
  toasts.value = [...toasts.value, { ...toast, id: lastId }].slice(-TOASTS_MAX);
  return lastId;
}

function remove(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

/** The messages. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map((toast) => (
        <div key={toast.id} class={toast.failure === undefined ? "toast" : "toast toast-bad"}>
          {toast.failure === undefined ? (
            <span>{toast.text}</span>
          ) : (
            <Problem failure={toast.failure} />
          )}
          {toast.undo !== undefined && (
            <button type="button" class="toast-act" onClick={toast.undo}>
              {t("Undo")}
            </button>
          )}
          {toast.undo === undefined && (
            <button type="button" class="toast-act" onClick={() => remove(toast.id)}>
              {t("Close")}
            </button>
          )}
        </div>
      ))}
    </div>
  );
}
