// Marks beside a SQLite file: proof that it held data, and that its write-ahead log did. Without them a lost file looks like
// the first start, and a lost log like one that was never written.
//
//   FILE.mark, .FILE.mark   the same JSON twice: one may be lost together with the file
import { readFileSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { replaceFileSync } from "../files/index.ts";
import { DatabaseError } from "./error.ts";

/** Header of a write-ahead log (https://sqlite.org/fileformat2.html section 4.1): a shorter one has no frames. */
const LOG_HEADER_BYTES = 32;

interface Mark {
  /** 1: written by a program that does not keep checksums, which are then out of date. Undefined: damaged. */
  version: 1 | 2 | undefined;
  /** True while the log contains commits that the file may not have. */
  log: boolean;
}

/** The marks of one file. */
export class SqliteMark {
  readonly #path: string;
  readonly #places: readonly string[];
  readonly #acceptsLoss: boolean;
  #written: boolean | undefined;

  constructor(path: string, acceptsLoss: boolean) {
    this.#path = path;
    this.#acceptsLoss = acceptsLoss;
    this.#places = [`${path}.mark`, join(dirname(path), `.${basename(path)}.mark`)];
  }

  /**
   * Throws a DatabaseError if the file, or its log, held data and is missing or empty. Call it before SQLite opens the file,
   * which would create both.
   */
  requireWhole(): void {
    const mark = this.#read();
    const lost = mark === undefined ? undefined : this.#findLoss(mark);
    if (lost !== undefined) this.refuse(lost);
  }

  /** Throws a DatabaseError that describes a loss; accepted ones are forgotten. */
  refuse(loss: string): void {
    if (this.#acceptsLoss) {
      this.remove();
      return;
    }
    throw new DatabaseError(
      "corrupt",
      `${loss}: restore a backup, or start once with --accept-loss (or PLATFORM_ACCEPT_LOSS=true) to continue without it`,
    );
  }

  /** True if checksums of the file are up to date. */
  get hasSums(): boolean {
    return this.#read()?.version === 2;
  }

  /** True if the log had commits, as it has after a crash. */
  get hadLog(): boolean {
    return this.#read()?.log === true;
  }

  /** True if the marks of this object say that the log has data. */
  get hasLog(): boolean {
    return this.#written === true;
  }

  /** Records that the file has data, and whether its log has; on disk when it returns. On a full disk the next call tries again. */
  write(log: boolean): void {
    if (this.#written === log) return;
    const mark: Mark = { version: 2, log };
    try {
      for (const place of this.#places) replaceFileSync(place, `${JSON.stringify(mark)}\n`);
      this.#written = log;
    } catch {
      // The data itself matters more than the proof that it was there.
    }
  }

  /** Forgets the file. */
  remove(): void {
    for (const place of this.#places) rmSync(place, { force: true });
    this.#written = undefined;
  }

  #findLoss({ log }: Mark): string | undefined {
    if (sizeOf(this.#path) === 0) return `${this.#path} held data, and is missing or empty`;
    if (log && sizeOf(`${this.#path}-wal`) < LOG_HEADER_BYTES)
      return `${this.#path}-wal held the last commits of ${this.#path}, and is missing or empty (nothing is lost if another program has opened the file since a crash, and merged it)`;
    return undefined;
  }

  // Of two that differ, the one that claims more: a copy may be older than the other.
  #read(): Mark | undefined {
    const found = this.#places.flatMap((place) => parse(place) ?? []);
    if (found.length === 0) return undefined;
    const isOld = found.some(({ version }) => version === 1);
    return { version: isOld ? 1 : 2, log: found.every(({ log }) => log) };
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

// A damaged mark still shows that there was a file.
function parse(place: string): Mark | undefined {
  let text: string;
  try {
    text = readFileSync(place, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const { version, log } = JSON.parse(text) as { version?: unknown; log?: unknown };
    return { version: version === 1 || version === 2 ? version : undefined, log: log === true };
  } catch {
    return { version: undefined, log: false };
  }
}
