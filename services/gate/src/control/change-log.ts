// The last changes of routes, for operators: bounded, since the start.
import { z } from "zod";

const CHANGES_MAX = 200;
const ROUTES_PER_CHANGE_MAX = 100;

const labels = z
  .array(z.string())
  .readonly()
  .describe("Labels of routes, at most 100; `counts` has their number");

/** One applied change, for the API. */
export const routeChange = z.object({
  at: z.string().describe("ISO 8601, UTC"),
  what: z.string().describe('For example "route set"'),
  actor: z.string().describe("Caller: `operator`, `user <sub>`, `SIGHUP` …"),
  added: labels,
  updated: labels,
  removed: labels,
  counts: z.object({ added: z.int(), updated: z.int(), removed: z.int() }),
  etag_before: z.string(),
  etag_after: z.string(),
});

/** One applied change. */
export type RouteChange = z.infer<typeof routeChange>;

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
