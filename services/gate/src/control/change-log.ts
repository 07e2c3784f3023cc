// The last changes of routes, for operators: bounded, since the start.

const CHANGES_MAX = 200;
const ROUTES_PER_CHANGE_MAX = 100;

/** One applied change. */
export interface RouteChange {
  /** ISO 8601, UTC. */
  at: string;
  /** For example "route set". */
  what: string;
  /** Caller: `operator`, `user <sub>`, `SIGHUP` … */
  actor: string;
  /** Labels of routes, at most 100 of each kind; `counts` has their numbers. */
  added: readonly string[];
  updated: readonly string[];
  removed: readonly string[];
  counts: { added: number; updated: number; removed: number };
  etag_before: string;
  etag_after: string;
}

/** The last changes. */
export class ChangeLog {
  readonly #changes: RouteChange[] = [];

  /** Adds a change, and drops the oldest one beyond 200. */
  add(change: Omit<RouteChange, "counts">): void {
    const { added, updated, removed } = change;
    const cut = (keys: readonly string[]) => keys.slice(0, ROUTES_PER_CHANGE_MAX);
    this.#changes.push({
      ...change,
      added: cut(added),
      updated: cut(updated),
      removed: cut(removed),
      counts: { added: added.length, updated: updated.length, removed: removed.length },
    });
    if (this.#changes.length > CHANGES_MAX) this.#changes.shift();
  }

  /** The last `limit` changes, the latest first. */
  list(limit: number): RouteChange[] {
    return this.#changes.slice(-limit).reverse();
  }
}
