// The result of the last complete scrub, in a file, so that it outlives a restart.
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import type { ScrubReport } from "./scrubber.ts";

/** A scrub that came to its end. */
export interface CompleteScrub extends Omit<ScrubReport, "isComplete"> {
  startedMs: number;
  endedMs: number;
}

/** Damaged bodies that are kept by number. */
const NAMED_MAX = 1_000;

/** Keeps the result. */
export class LastScrub {
  readonly #path: string;
  #last: CompleteScrub | undefined;

  /** Reads what is in the file; one that is missing or damaged is as none. */
  constructor(path: string) {
    this.#path = path;
    try {
      const found = JSON.parse(readFileSync(path, "utf8")) as Partial<CompleteScrub>;
      if (typeof found.endedMs === "number" && Array.isArray(found.damaged)) {
        this.#last = found as CompleteScrub;
      }
    } catch {
      // The next scrub writes it anew.
    }
  }

  get last(): CompleteScrub | undefined {
    return this.#last;
  }

  save(scrub: CompleteScrub): void {
    const { damaged, missing } = scrub;
    this.#last = {
      ...scrub,
      damaged: damaged.slice(0, NAMED_MAX),
      missing: missing.slice(0, NAMED_MAX),
    };
    try {
      writeFileSync(`${this.#path}.new`, JSON.stringify(this.#last), { mode: 0o600 });
      renameSync(`${this.#path}.new`, this.#path);
    } catch {
      // On a full disk it is known until the next start only.
    }
  }
}
