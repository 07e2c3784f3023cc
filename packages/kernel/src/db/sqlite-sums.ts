// Checksums of the pages of a SQLite file, and the length of its log, in a file of their own: SQLite checks neither its pages
// nor that its log is whole, so that flipped bits, an older copy of a file, or a log that is cut would pass for the truth.
//
//   FILE.sums   2 notes of 512 bytes, written in turns without a sync after the log is on disk: epoch and frames of the log
//               records: one with the checksums of all pages, then one for each restart of the log, with the changed ones
//
// A restart means that SQLite has copied all commits of the log to the file, so the records describe the file except for
// the pages that are in the log. After a crash between a restart and its record, the records are behind: the file is then
// believed and summed again.
import {
  closeSync,
  constants,
  fdatasyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeSync,
} from "node:fs";
import { crc32 } from "node:zlib";
import { replaceFileSync } from "../files/index.ts";
import { isSameOrLater, type LogPoint, type SqliteLog } from "./sqlite-log.ts";
import { applyPages, type PageSums } from "./sqlite-pages.ts";

const NOTE_BYTES = 512;
const RECORDS_AT = 2 * NOTE_BYTES;
const NOTE_MAGIC = 0x51_4e_54_31;
const RECORD_MAGIC = 0x51_52_43_31;
const RECORD_HEAD_BYTES = 32;
const ALL_PAGES = 1;
const CHANGED_PAGES = 2;
/** Of the file without pages in a log. */
const NO_LOG = "0".repeat(16);
const APPENDED_BYTES_MAX = 1024 * 1024;

/** Options of {@link SqliteSums}. */
export interface SqliteSumsOptions {
  path: string;
  /** Of the same file, read to its end. */
  log: SqliteLog;
  /** True if other processes write the file as well: its pages have no checksums then. */
  hasPeers: boolean;
}

interface Records extends PageSums {
  epoch: string;
}

/** The checksums of one file. */
export class SqliteSums {
  readonly #path: string;
  readonly #log: SqliteLog;
  readonly #hasPeers: boolean;
  readonly #noted: LogPoint | undefined;
  #descriptor: number | undefined;
  #noteCount = 0;
  /** Undefined while the pages have no checksums. */
  #records: Records | undefined;
  /** By page: its sum in a log that was restarted during `watch`. */
  #touched: Map<number, number> | undefined;
  #touchedCount = 0;
  /** Position of the next record. */
  #end = RECORDS_AT;
  /** Position from which a record is replaced by a new file. */
  #compactAt = Number.POSITIVE_INFINITY;

  /** Reads the file. */
  constructor({ path, log, hasPeers }: SqliteSumsOptions) {
    this.#path = path;
    this.#log = log;
    this.#hasPeers = hasPeers;
    const bytes = readIfThere(`${path}.sums`);
    this.#noted = readNotes(bytes);
    if (!hasPeers) this.#readRecords(bytes);
  }

  /** The sums of the pages of the file that are not in the log; undefined if they are not known. */
  get known(): PageSums | undefined {
    const records = this.#records;
    return records?.epoch === (this.#log.point?.epoch ?? NO_LOG) ? records : undefined;
  }

  /** Describes the loss if the log has less than it had; call it before SQLite opens the file. */
  findLostCommits(): string | undefined {
    const noted = this.#noted;
    if (noted === undefined) return undefined;
    const { epoch, point } = this.#log;
    const name = `${this.#path}-wal`;
    if (epoch === undefined) return `${name} is damaged: it held ${noted.frames} pages of commits`;
    if (epoch !== noted.epoch)
      return isSameOrLater(epoch, noted.epoch)
        ? undefined
        : `${name} is an older copy, or of another file`;
    const frames = point?.frames ?? 0;
    return frames >= noted.frames
      ? undefined
      : `${name} is damaged or an older copy: of ${noted.frames} pages of commits it has ${frames}`;
  }

  /**
   * Begins to write. `sums` are those of the file as it is, undefined if they are not known yet. The log may have changed
   * meanwhile, by commits of this process.
   */
  begin(sums: PageSums | undefined): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
    if (sums !== undefined && !this.#hasPeers)
      this.#records = { ...sums, epoch: this.#log.point?.epoch ?? NO_LOG };
    else this.#records = undefined;
    this.#writeAll();
  }

  /** Remembers which pages change from now on, for a thread that reads the file meanwhile. */
  watch(): void {
    this.#touched = new Map();
  }

  /** True if the page has changed since `watch`. */
  isTouched(page: number): boolean {
    const { pages, pageCount } = this.#log;
    const isGone = pageCount > 0 && page > pageCount;
    return isGone || pages.has(page) || this.#touched?.has(page) === true;
  }

  /** Ends `watch` with what the thread has found: the sums of all pages, if they were not known before. */
  supply(found: PageSums | undefined): void {
    const touched = this.#touched;
    this.#touched = undefined;
    if (found === undefined || touched === undefined) return;
    applyPages(found, touched, Math.max(found.pages.length, this.#touchedCount));
    this.begin(found);
  }

  /** Follows the log after a commit. */
  follow(hasForeignCommits = false): void {
    const changed = new Map<number, number>();
    this.#log.advance(() => {
      const { pages, pageCount } = this.#log;
      this.#touchedCount = pageCount;
      this.#apply(pages, pageCount);
      for (const [page, crc] of pages) {
        changed.set(page, crc);
        this.#touched?.set(page, crc);
      }
    });
    if (hasForeignCommits) this.forget();
    const records = this.#records;
    if (records === undefined) return;
    const epoch = this.#log.point?.epoch;
    if (epoch === undefined || epoch === records.epoch) return;
    records.epoch = epoch;
    this.#append(changed);
  }

  /** Notes that the log was on disk up to this point. A note is not synced: without it, less is claimed. */
  note(point: LogPoint | undefined): void {
    if (this.#descriptor === undefined) return;
    const note = Buffer.alloc(32);
    note.writeUInt32BE(NOTE_MAGIC, 0);
    note.writeUInt32BE(++this.#noteCount, 4);
    note.write(point?.epoch ?? NO_LOG, 8, "hex");
    note.writeUInt32BE(point?.frames ?? 0, 16);
    note.writeUInt32BE(crc32(note.subarray(0, 20)), 20);
    try {
      writeSync(this.#descriptor, note, 0, note.length, (this.#noteCount % 2) * NOTE_BYTES);
    } catch {
      // Without a note, less is claimed.
    }
  }

  /** Forgets the checksums of the pages until the next start. */
  forget(): void {
    this.#records = undefined;
    this.#touched = undefined;
    if (this.#descriptor !== undefined) ftruncateSync(this.#descriptor, RECORDS_AT);
  }

  /** Call it before SQLite merges and removes the log. */
  close(hasForeignCommits: boolean): void {
    this.follow(hasForeignCommits);
    const records = this.#records;
    if (records !== undefined && this.#log.point !== undefined) {
      this.#apply(this.#log.pages, this.#log.pageCount);
      records.epoch = NO_LOG;
      this.#append(this.#log.pages);
    }
    // Other processes may still have the log; the mark says when it is gone.
    if (!this.#hasPeers) {
      this.note(undefined);
      this.note(undefined);
    }
    this.stop();
  }

  /** Ends without a record. */
  stop(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
    this.#log.close();
  }

  #apply(pages: ReadonlyMap<number, number>, pageCount: number): void {
    if (this.#records !== undefined) applyPages(this.#records, pages, pageCount);
  }

  #readRecords(bytes: Buffer): void {
    for (let at = RECORDS_AT; at + RECORD_HEAD_BYTES <= bytes.length;) {
      const head = bytes.subarray(at, at + RECORD_HEAD_BYTES);
      const kind = head.readUInt32BE(4);
      const count = head.readUInt32BE(16);
      const end = at + RECORD_HEAD_BYTES + count * (kind === ALL_PAGES ? 4 : 8);
      if (head.readUInt32BE(0) !== RECORD_MAGIC || end > bytes.length) return;
      const body = bytes.subarray(at + RECORD_HEAD_BYTES, end);
      if (head.readUInt32BE(28) !== crc32(body, crc32(head.subarray(0, 28)))) return;
      this.#records = readRecord(head, body, this.#records);
      at = end;
    }
  }

  // Of a new or grown file: atomically, so that a crash leaves the old records.
  #writeAll(): void {
    const place = `${this.#path}.sums`;
    if (this.#hasPeers) {
      this.#openShared(place);
      return;
    }
    const records = this.#records;
    const notes = Buffer.alloc(RECORDS_AT);
    const text = records === undefined ? notes : Buffer.concat([notes, encodeAll(records)]);
    try {
      replaceFileSync(place, text);
      if (this.#descriptor !== undefined) closeSync(this.#descriptor);
      this.#descriptor = openSync(place, "r+");
    } catch {
      // The data itself matters more than its checksums.
      this.#records = undefined;
      return;
    }
    this.#end = text.length;
    this.#compactAt = this.#end + Math.max(APPENDED_BYTES_MAX, this.#end);
    this.note(this.#log.point);
    this.note(this.#log.point);
  }

  // Not replaced: other processes write their notes to the same file.
  #openShared(place: string): void {
    try {
      this.#descriptor = openSync(place, constants.O_RDWR | constants.O_CREAT, 0o600);
      ftruncateSync(this.#descriptor, RECORDS_AT);
    } catch {
      return;
    }
    this.note(this.#log.point);
    this.note(this.#log.point);
  }

  #append(changed: ReadonlyMap<number, number>): void {
    const records = this.#records;
    if (records === undefined || this.#descriptor === undefined) return;
    if (this.#end > this.#compactAt) {
      this.#writeAll();
      return;
    }
    const bytes = encodeChanged(records, changed);
    try {
      writeSync(this.#descriptor, bytes, 0, bytes.length, this.#end);
      fdatasyncSync(this.#descriptor);
      this.#end += bytes.length;
    } catch {
      this.#records = undefined;
    }
  }
}

function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return Buffer.alloc(0);
    throw error;
  }
}

// The note that claims more; both are true.
function readNotes(bytes: Buffer): LogPoint | undefined {
  const notes = [0, NOTE_BYTES].flatMap((at) => readNote(bytes.subarray(at, at + 32)) ?? []);
  const [last] = notes.toSorted((one, other) => other.count - one.count);
  return last === undefined || last.epoch === NO_LOG ? undefined : last;
}

function readNote(note: Buffer): (LogPoint & { count: number }) | undefined {
  if (note.length < 32 || note.readUInt32BE(0) !== NOTE_MAGIC) return undefined;
  if (note.readUInt32BE(20) !== crc32(note.subarray(0, 20))) return undefined;
  return {
    count: note.readUInt32BE(4),
    epoch: note.toString("hex", 8, 16),
    frames: note.readUInt32BE(16),
  };
}

function readRecord(head: Buffer, body: Buffer, before: Records | undefined): Records | undefined {
  const sums: Records = {
    pageBytes: head.readUInt32BE(8),
    epoch: head.toString("hex", 20, 28),
    pages: before?.pages ?? new Uint32Array(0),
  };
  if (head.readUInt32BE(4) === ALL_PAGES) {
    sums.pages = Uint32Array.from({ length: body.length / 4 }, (_, at) =>
      body.readUInt32BE(at * 4),
    );
    return sums;
  }
  if (before === undefined) return undefined;
  const changed = new Map<number, number>();
  for (let at = 0; at < body.length; at += 8)
    changed.set(body.readUInt32BE(at), body.readUInt32BE(at + 4));
  applyPages(sums, changed, head.readUInt32BE(12));
  return sums;
}

function encodeAll(records: Records): Buffer {
  const body = Buffer.alloc(records.pages.length * 4);
  for (const [at, crc] of records.pages.entries()) body.writeUInt32BE(crc, at * 4);
  return encodeRecord(ALL_PAGES, records, records.pages.length, body);
}

function encodeChanged(records: Records, changed: ReadonlyMap<number, number>): Buffer {
  const body = Buffer.alloc(changed.size * 8);
  let at = 0;
  for (const [page, crc] of changed) {
    body.writeUInt32BE(page, at);
    at = body.writeUInt32BE(crc, at + 4);
  }
  return encodeRecord(CHANGED_PAGES, records, changed.size, body);
}

function encodeRecord(kind: number, records: Records, count: number, body: Buffer): Buffer {
  const head = Buffer.alloc(RECORD_HEAD_BYTES);
  head.writeUInt32BE(RECORD_MAGIC, 0);
  head.writeUInt32BE(kind, 4);
  head.writeUInt32BE(records.pageBytes, 8);
  head.writeUInt32BE(records.pages.length, 12);
  head.writeUInt32BE(count, 16);
  head.write(records.epoch, 20, "hex");
  head.writeUInt32BE(crc32(body, crc32(head.subarray(0, 28))), 28);
  return Buffer.concat([head, body]);
}
