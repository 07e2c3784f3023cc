// Reads SQLite's write-ahead log as SQLite does: which commits it has, and the checksums of the pages in them.
// https://sqlite.org/fileformat2.html section 4
import { closeSync, openSync, readSync } from "node:fs";
import { crc32 } from "node:zlib";

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const MAGIC = 0x377f0682;
const FRAMES_PER_READ = 8;
/** Restarts after the one that was noted last; notes are written at least at each restart, unless the disk is full. */
const RESTARTS_MAX = 4_096;

/** A point in the log: `frames` frames of the log with the salts of `epoch` (16 hex digits). */
export interface LogPoint {
  epoch: string;
  frames: number;
}

/**
 * True if the log with `epoch` is `other`, or came after it: each restart of a log adds one to the first salt, which is random
 * in a new log.
 */
export function isSameOrLater(epoch: string, other: string): boolean {
  const salt = (text: string): number => Number.parseInt(text.slice(0, 8), 16);
  const restarts = (salt(epoch) - salt(other)) >>> 0;
  return epoch === other || (restarts > 0 && restarts <= RESTARTS_MAX);
}

/** A log that is followed while SQLite writes it. */
export class SqliteLog {
  readonly #path: string;
  #descriptor: number | undefined;
  #epoch: string | undefined;
  #frames = 0;
  #pageBytes = 0;
  #pageCount = 0;
  #isBigEndian = false;
  #sum: readonly [number, number] = [0, 0];
  /** By number: CRC-32 of the content in the last commit of this log. */
  #pages = new Map<number, number>();
  #buffer = new Uint32Array(0);

  /** The file may be missing. */
  constructor(path: string) {
    this.#path = path;
  }

  /** Undefined if the log has no commit. */
  get point(): LogPoint | undefined {
    if (this.#epoch === undefined || this.#frames === 0) return undefined;
    return { epoch: this.#epoch, frames: this.#frames };
  }

  /** The salts in the header of the log, which may have no commits yet; undefined if it has no valid header. */
  get epoch(): string | undefined {
    return this.#pageBytes === 0 ? undefined : this.#epoch;
  }

  /** Pages of the log's commits, by number (from 1), with the CRC-32 of their content. */
  get pages(): ReadonlyMap<number, number> {
    return this.#pages;
  }

  /** Number of pages of the database after the last commit. */
  get pageCount(): number {
    return this.#pageCount;
  }

  /** Reads what was committed since the last call. If the log was restarted, `onRestart` is called before its new commits are read. */
  advance(onRestart: () => void = () => undefined): void {
    const header = this.#readHeader();
    if (header === undefined) return;
    const epoch = header.toString("hex", 16, 24);
    if (epoch !== this.#epoch) {
      if (this.point !== undefined) onRestart();
      this.#begin(header, epoch);
    }
    this.#readCommits();
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  #readHeader(): Buffer | undefined {
    try {
      this.#descriptor ??= openSync(this.#path, "r");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
    const header = Buffer.alloc(HEADER_BYTES);
    if (readSync(this.#descriptor, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) return undefined;
    return (header.readUInt32BE(0) & ~1) === MAGIC ? header : undefined;
  }

  #begin(header: Buffer, epoch: string): void {
    this.#epoch = epoch;
    this.#frames = 0;
    this.#pages = new Map();
    this.#isBigEndian = (header.readUInt32BE(0) & 1) === 1;
    this.#pageBytes = header.readUInt32BE(8);
    const words = new Uint32Array(HEADER_BYTES / 4);
    Buffer.from(words.buffer).set(header);
    const sum = this.#addWords([0, 0], words.subarray(0, 6));
    const isValid = sum[0] === header.readUInt32BE(24) && sum[1] === header.readUInt32BE(28);
    const isSize = this.#pageBytes >= 512 && this.#pageBytes <= 65_536;
    // SQLite ignores the log as well.
    if (!isValid || !isSize) this.#pageBytes = 0;
    this.#sum = sum;
    const bytes = (FRAME_HEADER_BYTES + this.#pageBytes) * FRAMES_PER_READ;
    if (this.#buffer.byteLength !== bytes) this.#buffer = new Uint32Array(bytes / 4);
  }

  #readCommits(): void {
    if (this.#pageBytes === 0) return;
    const frameBytes = FRAME_HEADER_BYTES + this.#pageBytes;
    const buffer = Buffer.from(this.#buffer.buffer);
    let [sum, frames] = [this.#sum, this.#frames];
    const pending: [page: number, crc: number][] = [];
    for (;;) {
      const position = HEADER_BYTES + frames * frameBytes;
      const read = readSync(this.#descriptor!, buffer, 0, buffer.length, position);
      const count = Math.floor(read / frameBytes);
      for (let index = 0; index < count; index++) {
        const frame = buffer.subarray(index * frameBytes, (index + 1) * frameBytes);
        const next = this.#checkFrame(frame, sum);
        if (next === undefined) return;
        sum = next;
        frames++;
        pending.push([frame.readUInt32BE(0), crc32(frame.subarray(FRAME_HEADER_BYTES))]);
        if (frame.readUInt32BE(4) === 0) continue;
        for (const [page, crc] of pending.splice(0)) this.#pages.set(page, crc);
        [this.#sum, this.#frames, this.#pageCount] = [sum, frames, frame.readUInt32BE(4)];
      }
      if (count < FRAMES_PER_READ) return;
    }
  }

  // Undefined for a frame of an older log, or one that is damaged or not complete.
  #checkFrame(
    frame: Buffer,
    sum: readonly [number, number],
  ): readonly [number, number] | undefined {
    if (frame.toString("hex", 8, 16) !== this.#epoch) return undefined;
    const words = new Uint32Array(frame.buffer, frame.byteOffset, frame.length / 4);
    const next = this.#addWords(this.#addWords(sum, words.subarray(0, 2)), words.subarray(6));
    const isValid = next[0] === frame.readUInt32BE(16) && next[1] === frame.readUInt32BE(20);
    return isValid ? next : undefined;
  }

  #addWords([first, second]: readonly [number, number], words: Uint32Array): [number, number] {
    // A copy in the order of this machine; all machines that Node runs on read words from the lowest byte.
    if (this.#isBigEndian) {
      const swapped = Buffer.from(new Uint32Array(words).buffer).swap32();
      words = new Uint32Array(swapped.buffer, swapped.byteOffset, words.length);
    }
    let [s1, s2] = [first, second];
    for (let at = 0; at < words.length; at += 2) {
      s1 = (s1 + words[at]! + s2) | 0;
      s2 = (s2 + words[at + 1]! + s1) | 0;
    }
    return [s1 >>> 0, s2 >>> 0];
  }
}
