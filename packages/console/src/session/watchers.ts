// Functions that wait for the end of sessions.
import type { EndReason } from "./session-store.ts";

type OnEnd = (reason: EndReason) => void;

/** The functions by session. */
export class Watchers {
  readonly #byId = new Map<string, Set<OnEnd>>();

  /** Ids of the watched sessions. */
  get ids(): string[] {
    return [...this.#byId.keys()];
  }

  /** Adds a function that is called once; returns one that removes it. */
  add(id: string, onEnd: OnEnd): () => void {
    const watchers = this.#byId.get(id) ?? new Set();
    watchers.add(onEnd);
    this.#byId.set(id, watchers);
    return () => {
      watchers.delete(onEnd);
      if (watchers.size === 0 && this.#byId.get(id) === watchers) this.#byId.delete(id);
    };
  }

  /** Calls the functions of a session and forgets them. */
  report(id: string, reason: EndReason): void {
    const watchers = this.#byId.get(id);
    this.#byId.delete(id);
    for (const onEnd of watchers ?? []) onEnd(reason);
  }
}
