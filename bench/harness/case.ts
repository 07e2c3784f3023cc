// The interface of benchmark cases and their run-time context.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Build, RuntimeName } from "./build.ts";
import type { CoreAllotment } from "./machine.ts";
import type { PinnedProcess } from "./process.ts";
import type { CaseReport } from "./report.ts";

/** Options and environment of a run. */
export interface BenchContext {
  rounds: number;
  /** Length of one round of load. */
  seconds: number;
  /** The runtimes of this run. */
  runtimes: readonly RuntimeName[];
  /** The builds of our services to measure: this checkout on each runtime and, if asked, an earlier one beside it. */
  builds: readonly Build[];
  cores: CoreAllotment;
  /** Reports progress. */
  say(line: string): void;
}

/** A benchmark case: its work, contenders and goals. */
export interface BenchCase {
  name: string;
  title: string;
  /** Run only if selected by name. */
  isOptional?: boolean;
  /** Resolves to the report; undefined if the case writes its own results file. */
  run(context: BenchContext): Promise<CaseReport | undefined>;
}

/** Processes and scratch files of a case; removed when the case ends, even if it fails. */
export class Workspace {
  readonly folder = mkdtempSync(join(tmpdir(), "platform-bench-"));
  readonly #started: PinnedProcess[] = [];
  readonly #removeFolder = (): void => rmSync(this.folder, { recursive: true, force: true });

  constructor() {
    process.on("exit", this.#removeFolder);
  }

  /** Registers a process to stop, and returns it. */
  keep(started: PinnedProcess): PinnedProcess {
    this.#started.push(started);
    return started;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#started.map((started) => started.stop()));
    this.#removeFolder();
    process.off("exit", this.#removeFolder);
  }
}
