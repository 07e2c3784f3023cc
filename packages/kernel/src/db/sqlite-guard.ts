// Guards the files of a SQLite database against silent loss: marks, checksums and structure at the start, the log while it runs.
import { closeSync, fstatSync, openSync, realpathSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { describeFullDisk, FULL_DISK } from "../health/index.ts";
import { DiskReserve } from "../files/index.ts";
import { DatabaseError, readDatabaseError } from "./error.ts";
import {
  checkInBackground,
  explainDamage,
  findFault,
  type CheckResult,
  type RunningCheck,
  WAIT_BYTES_MAX,
} from "./sqlite-check.ts";
import { createFile } from "./sqlite-file.ts";
import { SqliteLog } from "./sqlite-log.ts";
import { SqliteMark } from "./sqlite-mark.ts";
import { describePages, readPages, type PageSums } from "./sqlite-pages.ts";
import { SqliteSums } from "./sqlite-sums.ts";

/** A quota, for example, shows in refused writes only. */
const FULL_SHOWN_MS = 10_000;

/** Options of {@link SqliteGuard}. */
export interface SqliteGuardOptions {
  path: string;
  /** See `SqliteOptions`. */
  processes: "one" | "guests" | "many";
  reserveBytes: number;
  acceptLoss: boolean;
}

/** The guard of one open database. */
export class SqliteGuard {
  readonly #path: string;
  readonly #processes: SqliteGuardOptions["processes"];
  readonly #reserve: DiskReserve;
  readonly #mark: SqliteMark;
  readonly #log: SqliteLog;
  readonly #sums: SqliteSums;
  /** Closed after SQLite has closed the file: closing it releases all locks of this process. */
  readonly #descriptor: number;
  readonly #known: PageSums | undefined;
  #dataVersion: StatementSync | undefined;
  #lastDataVersion: unknown;
  #isAttached = false;
  #check: RunningCheck | undefined;
  #damage: string | undefined;
  #fullAtMs = Number.NEGATIVE_INFINITY;

  /** Call it before SQLite opens the file. Throws a DatabaseError, and changes no file, if data is missing or damaged. */
  constructor({ path, processes, reserveBytes, acceptLoss }: SqliteGuardOptions) {
    this.#path = resolveLinks(path);
    this.#processes = processes;
    this.#reserve = new DiskReserve(this.#path, reserveBytes);
    if (describeFullDisk(dirname(this.#path)) !== undefined) this.#reserve.release();
    this.#mark = new SqliteMark(this.#path, acceptLoss);
    this.#mark.requireWhole();
    createFile(this.#path);
    this.#log = new SqliteLog(`${this.#path}-wal`);
    this.#log.advance();
    this.#sums = new SqliteSums({ path: this.#path, log: this.#log, hasPeers: this.#hasPeers });
    this.#descriptor = openSync(this.#path, "r");
    try {
      this.#known = this.#verify();
    } catch (error) {
      this.release();
      throw error;
    }
  }

  /** The fault of the file, once that is known; for health checks. */
  get damage(): string | undefined {
    return this.#damage;
  }

  /** Checks the open database, and begins to follow it. `location` opens it again. Throws a DatabaseError if it is damaged. */
  attach(writer: DatabaseSync, location: string): void {
    this.#isAttached = true;
    if (this.#processes === "guests") this.#dataVersion = writer.prepare("pragma data_version");
    this.#hasForeignCommits();
    const isLarge = this.#size > WAIT_BYTES_MAX;
    const fault = isLarge ? undefined : findFault(writer);
    if (fault !== undefined) throw new DatabaseError("corrupt", explainDamage(this.#path, fault));
    const sums = this.#known ?? (isLarge ? undefined : this.#readPages().found);
    this.#sums.begin(this.#hasPeers ? undefined : sums);
    if (this.#size > 0) this.#mark.write(this.#logSize > 0);
    this.#reserve.take();
    if (!isLarge) return;
    this.#sums.watch();
    this.#check = checkInBackground(
      {
        location,
        descriptor: this.#descriptor,
        readsPages: !this.#hasPeers,
        expected: this.#known,
      },
      (result) => this.#noteResult(result),
    );
  }

  /** Call it after a commit, before it is acknowledged and before the next one. */
  noteCommit(): void {
    // A transaction without changes leaves an empty log.
    if (!this.#mark.hasLog && this.#logSize > 0) this.#mark.write(true);
    try {
      this.#sums.follow(this.#hasForeignCommits());
    } catch {
      // The log cannot be read. The commit is in it nevertheless; without checksums less is detected.
      this.#sums.forget();
    }
  }

  /** Returns a function that notes that the commits so far are on disk. */
  captureCommits(): () => void {
    const { point } = this.#log;
    return () => this.#sums.note(point);
  }

  /** Notes damage and a full disk that an error shows. */
  noteError(error: unknown): void {
    const { kind } = readDatabaseError(error);
    if (kind === "full") {
      this.#fullAtMs = performance.now();
      this.#reserve.release();
    }
    if (kind === "corrupt") this.noteDamage(error instanceof Error ? error.message : String(error));
  }

  /** Notes damage; the first is shown. */
  noteDamage(fault: string): void {
    this.#damage ??= explainDamage(this.#path, fault);
  }

  /** The fault of a full disk, for health checks. */
  get fullDisk(): string | undefined {
    const wasFull = performance.now() - this.#fullAtMs < FULL_SHOWN_MS;
    if (wasFull) return FULL_DISK;
    this.#reserve.take();
    return this.#reserve.isReleased ? FULL_DISK : describeFullDisk(dirname(this.#path));
  }

  /** Ends the check in the background. */
  async stop(): Promise<void> {
    await this.#check?.stop();
  }

  /** Call it before SQLite merges and removes the log: a crash in between must not look like a loss. */
  prepareClose(): void {
    if (this.#size === 0) {
      this.#sums.stop();
      return;
    }
    this.#sums.close(this.#hasForeignCommits());
    this.#mark.write(false);
  }

  /** Call it after SQLite has closed the file. */
  release(): void {
    this.#sums.stop();
    closeSync(this.#descriptor);
    // Another process has the file open, and keeps the log.
    if (this.#isAttached && this.#logSize > 0) this.#mark.write(true);
  }

  get #hasPeers(): boolean {
    return this.#processes === "many";
  }

  get #size(): number {
    return fstatSync(this.#descriptor).size;
  }

  get #logSize(): number {
    return statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }

  // Returns the sums of the pages if they are known.
  #verify(): PageSums | undefined {
    const lost = this.#mark.hadLog ? this.#sums.findLostCommits() : undefined;
    if (lost !== undefined) this.#mark.refuse(lost);
    const known = this.#mark.hasSums ? this.#sums.known : undefined;
    if (known === undefined || this.#size > WAIT_BYTES_MAX) return known;
    const different = this.#readPages(known).different.filter(
      (page) => !this.#sums.isTouched(page),
    );
    if (different.length === 0) return known;
    this.#mark.refuse(explainPages(this.#path, different));
    return undefined;
  }

  #readPages(expected?: PageSums) {
    return readPages(this.#descriptor, expected);
  }

  #noteResult({ fault, different, found }: CheckResult): void {
    const changed = different.filter((page) => !this.#sums.isTouched(page));
    if (fault !== undefined) this.noteDamage(fault);
    else if (changed.length > 0) this.noteDamage(describePages(changed));
    this.#sums.supply(this.#known === undefined ? found : undefined);
  }

  // Commits of other processes, whose pages this one may not have seen.
  #hasForeignCommits(): boolean {
    const version = this.#dataVersion?.get()?.["data_version"];
    const isChanged = version !== this.#lastDataVersion;
    this.#lastDataVersion = version;
    return isChanged;
  }
}

function explainPages(path: string, pages: readonly number[]): string {
  return `${path} is damaged (${describePages(pages)})`;
}

function resolveLinks(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // A new file.
    return path;
  }
}
