// The result of the last complete scrub, in a file, so that it survives a restart.
import { readFileSync } from "node:fs";
import { replaceFileSync } from "@platform/kernel/files";
import type { ScrubReport } from "./scrubber.ts";

/** A complete scrub. */
export interface CompleteScrub extends Omit<ScrubReport, "isComplete"> {
  startedMs: number;
  endedMs: number;
}

/** Damaged bodies that are listed by number. */
const NAMED_MAX = 1_000;

/** Stores the result. */
export class LastScrub {
  readonly #path: string;
  #last: CompleteScrub | undefined;

  /** Reads the file. A missing or damaged file counts as no result. */
  constructor(path: string) {
    this.#path = path;
    try {
      const found = JSON.parse(readFileSync(path, "utf8")) as Partial<CompleteScrub>;
      if (typeof found.endedMs === "number" && Array.isArray(found.damaged)) {
        this.#last = found as CompleteScrub;
      }
    } catch {
      // The next scrub rewrites it.
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
      replaceFileSync(this.#path, JSON.stringify(this.#last));
    } catch {
      // On a full disk the result is lost at the next start.
    }
  }
}
