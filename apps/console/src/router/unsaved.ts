// Text that is not saved: whoever leaves its page is asked before.
import { signal } from "@preact/signals";
import { useLayoutEffect, useState } from "preact/hooks";
import { guardLeaving, type Address } from "./router.ts";

/** Leaves the page, if the user confirms it; undefined while nothing is asked. */
export const pendingLeave = signal<(() => void) | undefined>(undefined);

/** The names of the parameters that, with the path, say what is edited; one set for each editor with unsaved text. */
const editors = new Map<symbol, readonly string[]>();

/**
 * Asks before the page is left while `isUnsaved`: for another page, another value of one of `parameters`, and another
 * document. Returns a function that lets the page be left: after the text was saved or is gone.
 */
export function useUnsaved(isUnsaved: boolean, parameters: readonly string[] = []): () => void {
  const [id] = useState(() => Symbol("editor"));
  const names = parameters.join(" ");
  // Before the paint: the next key may leave the page.
  useLayoutEffect(() => {
    if (!isUnsaved) return undefined;
    editors.set(id, parameters);
    return () => editors.delete(id);
  }, [id, isUnsaved, names]);
  return () => editors.delete(id);
}

/** Runs what ends the page, unless the user keeps it for its unsaved text. */
export function leaveUnlessUnsaved(run: () => void): void {
  if (editors.size === 0) run();
  else ask(run);
}

/** True if the page has text that would be lost with it: of an editor, or of a form. */
export function hasTypedText(): boolean {
  return editors.size > 0 || document.querySelector("dialog[open] form") !== null;
}

/** Starts to watch for unsaved text. */
export function startUnsaved(): void {
  guardLeaving((from, to, leave) => {
    const isLeft = [...editors.values()].some((names) => isOther(from, to, names));
    if (isLeft) ask(leave);
    return !isLeft;
  });
  addEventListener("beforeunload", (event) => {
    if (editors.size > 0) event.preventDefault();
  });
}

function ask(leave: () => void): void {
  pendingLeave.value = () => {
    pendingLeave.value = undefined;
    editors.clear();
    leave();
  };
}

function isOther(from: Address, to: Address, names: readonly string[]): boolean {
  if (from.path !== to.path) return true;
  const [one, other] = [new URLSearchParams(from.search), new URLSearchParams(to.search)];
  return names.some((name) => one.get(name) !== other.get(name));
}
