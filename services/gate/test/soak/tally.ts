// Counts the outcomes of requests by route and cause, and keeps those that no fault explains.

const UNEXPECTED_MAX = 20;

/** When something was broken; requests that overlap with it, or with the time until all recover, may fail. */
export class Outages {
  readonly #graceMs: number;
  readonly #spans: { beginMs: number; endMs: number }[] = [];

  constructor(graceMs: number) {
    this.#graceMs = graceMs;
  }

  get count(): number {
    return this.#spans.length;
  }

  begin(): void {
    this.#spans.push({ beginMs: performance.now(), endMs: Number.POSITIVE_INFINITY });
  }

  end(): void {
    this.#spans.at(-1)!.endMs = performance.now() + this.#graceMs;
  }

  overlaps(beginMs: number, endMs: number): boolean {
    return this.#spans.some((span) => beginMs <= span.endMs && endMs >= span.beginMs);
  }
}

/** Outcomes that a route may have: always, and during outages. A cause is a status, or `cut`. */
export interface Expectation {
  always: readonly string[];
  duringOutage?: readonly string[];
  outages?: Outages;
}

/** Outcomes by route and cause. */
export class Tally {
  readonly counts: Record<string, number> = {};
  /** The first of them. */
  readonly unexpected: string[] = [];
  unexpectedCount = 0;

  /** Counts one; false if no fault explains it. */
  add(route: string, cause: string, expected: Expectation, beganMs: number): boolean {
    const name = `${route} ${cause}`;
    this.counts[name] = (this.counts[name] ?? 0) + 1;
    const { always, duringOutage = [], outages } = expected;
    if (always.includes(cause)) return true;
    const nowMs = performance.now();
    if (duringOutage.includes(cause) && outages?.overlaps(beganMs, nowMs) === true) return true;
    this.unexpectedCount++;
    if (this.unexpected.length < UNEXPECTED_MAX) this.unexpected.push(`${name} at ${nowMs | 0} ms`);
    return false;
  }
}
