// Names of failed handshakes that the control plane is told: bounded, because anyone can send any name.

const WINDOW_MS = 60_000;
const PER_WINDOW = 100;

/** Passes each name once in a minute, and at most 100 names. */
export class UnknownNames {
  readonly #report: (name: string) => void;
  readonly #readNowMs: () => number;
  #begunMs = -Infinity;
  readonly #seen = new Set<string>();

  constructor(report: (name: string) => void, readNowMs: () => number) {
    this.#report = report;
    this.#readNowMs = readNowMs;
  }

  note(name: string): void {
    const now = this.#readNowMs();
    if (now - this.#begunMs >= WINDOW_MS) {
      this.#begunMs = now;
      this.#seen.clear();
    }
    if (this.#seen.size >= PER_WINDOW || this.#seen.has(name)) return;
    this.#seen.add(name);
    this.#report(name);
  }
}
