// What a benchmark case is, and what it is given to run with.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CoreAllotment } from "./machine.ts";
import type { PinnedProcess } from "./process.ts";
import type { CaseReport } from "./report.ts";

/** The run's options and what a case needs from its surroundings. */
export interface BenchContext {
  rounds: number;
  /** Length of one round of load. */
  seconds: number;
  /** The runtimes to measure ours on. */
  runtimes: readonly ("node" | "bun")[];
  cores: CoreAllotment;
  /** Reports progress. */
  say(line: string): void;
}

/** One case: a file that knows its work, its contenders and its goals. */
export interface BenchCase {
  name: string;
  title: string;
  /** Run only when asked for by name. */
  isOptional?: boolean;
  /** Undefined where the case writes its results to a file of its own. */
  run(context: BenchContext): Promise<CaseReport | undefined>;
}

/** Everything that a case starts or writes; gone when the case ends, however it ends. */
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
