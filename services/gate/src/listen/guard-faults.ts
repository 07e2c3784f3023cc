// Logs failures of services that guards depend on, at most one line per service and interval.

const LOG_INTERVAL_MS = 10_000;
const SERVICES_MAX = 256;

/** Failures of one worker's guards. */
export class GuardFaults {
  readonly #warn: (msg: string, fields: Record<string, string>) => void;
  readonly #loggedMs = new Map<string, number>();

  constructor(warn: (msg: string, fields: Record<string, string>) => void) {
    this.#warn = warn;
  }

  /** Notes a failure of the service at `url`. */
  note(msg: string, url: string, error: unknown): void {
    const nowMs = performance.now();
    if (nowMs - (this.#loggedMs.get(url) ?? -LOG_INTERVAL_MS) < LOG_INTERVAL_MS) return;
    if (this.#loggedMs.size >= SERVICES_MAX) this.#loggedMs.clear();
    this.#loggedMs.set(url, nowMs);
    this.#warn(msg, { url, error: describe(error) });
  }
}

// The reason of a failed fetch is in its cause.
function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message;
}
