// The ledger file of one worker: appended to before a request goes up and when it has ended.
import { closeSync, fdatasync, fdatasyncSync, mkdirSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import {
  formatFileName,
  formatRecord,
  LEDGER_HEAD,
  type ReservedRecord,
  type SettledRecord,
} from "./ledger-record.ts";

/** Records survive the end of the process immediately, and a power cut after this time. */
const SYNC_MS = 100;
const FILE_BYTES_MAX = 8_388_608;

/** Options of {@link LedgerWriter}. */
export interface LedgerWriterOptions {
  /** Folder of the files; created with the first one. */
  readonly folder: string;
  readonly instance: string;
  readonly onError: (error: Error) => void;
}

/** Appends to the files of one worker. */
export class LedgerWriter {
  readonly #options: LedgerWriterOptions;
  #descriptor = -1;
  #sequence = 0;
  #bytes = 0;
  #lastId = 0;
  #syncTimer: NodeJS.Timeout | undefined;
  /** Results that are written together: with the next reservation, or at the end of this turn of the event loop. */
  #results = "";
  #writing: NodeJS.Immediate | undefined;

  constructor(options: LedgerWriterOptions) {
    this.#options = options;
  }

  /** Writes a reservation; returns its number. Throws if it cannot be written: the request must not go up. */
  reserve(record: Omit<ReservedRecord, "k" | "id">): number {
    const id = this.#lastId + 1;
    const results = this.#takeResults();
    this.#append(results + formatRecord({ k: "reserved", id, ...record }));
    this.#lastId = id;
    return id;
  }

  /** Writes the result of a request, in this turn of the event loop. If that fails, its reservation counts in full. */
  settle(record: Omit<SettledRecord, "k">): void {
    this.#results += formatRecord({ k: "settled", ...record });
    this.#writing ??= setImmediate(() => this.#writeResults());
  }

  /** Closes the file. */
  close(): void {
    this.#writeResults();
    clearTimeout(this.#syncTimer);
    this.#syncTimer = undefined;
    this.#end();
  }

  #end(): void {
    if (this.#descriptor === -1) return;
    fdatasyncSync(this.#descriptor);
    closeSync(this.#descriptor);
    this.#descriptor = -1;
  }

  #takeResults(): string {
    const results = this.#results;
    this.#results = "";
    clearImmediate(this.#writing);
    this.#writing = undefined;
    return results;
  }

  #writeResults(): void {
    const results = this.#takeResults();
    if (results === "") return;
    try {
      this.#append(results);
    } catch (error) {
      this.#options.onError(error as Error);
    }
  }

  #append(lines: string): void {
    if (this.#descriptor === -1 || this.#bytes >= FILE_BYTES_MAX) this.#open();
    this.#write(lines);
    this.#syncTimer ??= setTimeout(() => this.#sync(), SYNC_MS);
  }

  #open(): void {
    const { folder, instance } = this.#options;
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const sequence = this.#sequence + 1;
    const descriptor = openSync(join(folder, formatFileName(instance, sequence)), "ax", 0o600);
    this.#end();
    this.#sequence = sequence;
    this.#descriptor = descriptor;
    this.#bytes = 0;
    this.#write(formatRecord(LEDGER_HEAD));
  }

  // A line that is written in part, on a full disk, ends the file: the next record begins another one.
  #write(lines: string): void {
    const size = Buffer.byteLength(lines);
    let written = 0;
    try {
      written = writeSync(this.#descriptor, lines);
    } finally {
      if (written !== size) this.#bytes = FILE_BYTES_MAX;
    }
    if (written !== size) throw new Error("A record of the AI ledger was written only in part.");
    this.#bytes += size;
  }

  #sync(): void {
    this.#syncTimer = undefined;
    if (this.#descriptor === -1) return;
    fdatasync(this.#descriptor, (error) => {
      // A file that was closed in the meantime is synced by the system.
      if (error !== null && error.code !== "EBADF") this.#options.onError(error);
    });
  }
}
