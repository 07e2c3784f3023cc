// Reads the rows of an index that may be damaged: those that match their seals, around the unreadable parts.
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue, type SQLOutputValue } from "node:sqlite";
import { FORMAT_VERSION, makeTables, PAGE_BYTES } from "../index/schema.ts";
import { salvageWal } from "./wal.ts";

/** A row by the names of its columns. */
export type Row = Record<string, SQLOutputValue>;

/** A table of a damaged index: its columns, the order in which it is read, and the check of its rows. */
export interface SalvagedTable {
  name: string;
  order: string;
  isWhole: (row: Row) => boolean;
}

/** An index that is read around its damage. */
export class Salvage {
  readonly #database: DatabaseSync;
  /** True if each row of each table that was read was present and intact. */
  isComplete = true;

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /**
   * Opens the index at `path` through copies of its files in `folder`; the originals stay unchanged. `undefined` if it
   * cannot be read at all.
   */
  static open(path: string, folder: string): Salvage | undefined {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    for (const attempt of [copyAsIs, copyWithoutDamage, copyWithNewFirstPage]) {
      const work = join(folder, "salvage.sqlite");
      for (const ending of ["", "-wal", "-shm"]) rmSync(`${work}${ending}`, { force: true });
      const database = tryOpen(path, work, attempt);
      if (database !== undefined) return new Salvage(database);
    }
    return undefined;
  }

  /** The readable rows: from the front up to the damage, and from the back. */
  *readRows({ name, order, isWhole }: SalvagedTable): Generator<Row, void, undefined> {
    let last: string | undefined;
    let isCut = false;
    for (const direction of ["", " desc"]) {
      const by = order
        .split(", ")
        .map((column) => `${column}${direction}`)
        .join(", ");
      try {
        for (const found of this.#database
          .prepare(`select * from ${name} order by ${by}`)
          .iterate()) {
          const row: Row = found;
          if (isCut && describeRow(row, order) === last) return;
          if (!isWhole(row)) {
            this.isComplete = false;
            continue;
          }
          if (!isCut) last = describeRow(row, order);
          yield row;
        }
        return;
      } catch {
        this.isComplete = false;
        isCut = true;
      }
    }
  }

  /** Rows found by their key; empty if they cannot be read. */
  find(text: string, ...values: SQLInputValue[]): Row[] {
    try {
      return this.#database.prepare(text).all(...values);
    } catch {
      this.isComplete = false;
      return [];
    }
  }

  close(): void {
    this.#database.close();
  }
}

function describeRow(row: Row, order: string): string {
  return order
    .split(", ")
    .map((column) => {
      const value = row[column];
      return value instanceof Uint8Array ? Buffer.from(value).toString("hex") : `${Number(value)}`;
    })
    .join("/");
}

function tryOpen(
  path: string,
  work: string,
  copy: (path: string, work: string) => void,
): DatabaseSync | undefined {
  let database: DatabaseSync | undefined;
  try {
    copy(path, work);
    database = new DatabaseSync(work);
    for (const table of ["meta", "buckets", "current", "versions", "blobs"]) {
      database.prepare(`select * from ${table} limit 1`);
    }
    // SQLite silently cuts a log at a damaged frame.
    const damaged = copy === copyAsIs && countDamagedFrames(path) > 0;
    if (!damaged) return database;
  } catch {
    // The other direction may get further.
  }
  database?.close();
  return undefined;
}

function countDamagedFrames(path: string): number {
  return existsSync(`${path}-wal`)
    ? salvageWal(readFileSync(`${path}-wal`), PAGE_BYTES).damaged
    : 0;
}

function copyAsIs(path: string, work: string): void {
  // SQLite would delete the log of an empty file.
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0) throw new Error("it is empty");
  copyFileSync(path, work);
  if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${work}-wal`);
}

// The header fields that are the same in every index (https://sqlite.org/fileformat2.html).
function copyWithoutDamage(path: string, work: string): void {
  if (existsSync(path)) copyFileSync(path, work);
  if ((statSync(work, { throwIfNoEntry: false })?.size ?? 0) < PAGE_BYTES) {
    writeFileSync(work, Buffer.alloc(PAGE_BYTES));
  }
  changeHead(work, 100, (head) => {
    head.write("SQLite format 3\0", 0, "latin1");
    head.writeUInt16BE(PAGE_BYTES, 16);
    head.set([2, 2, 0, 64, 32, 32], 18);
    // The length of the file is used, without free pages.
    head.fill(0, 28, 40);
    head.writeUInt32BE(4, 44);
    head.writeUInt32BE(1, 56);
    head.fill(0, 92, 96);
  });
  if (!existsSync(`${path}-wal`)) return;
  writeFileSync(`${work}-wal`, salvageWal(readFileSync(`${path}-wal`), PAGE_BYTES).bytes);
}

// The first page has the schema and the root pages of its trees: an index that was never copied has them where a new index
// has them.
function copyWithNewFirstPage(path: string, work: string): void {
  copyWithoutDamage(path, work);
  const model = `${work}.model`;
  try {
    const database = new DatabaseSync(model);
    database.exec(`pragma page_size = ${PAGE_BYTES}; begin`);
    makeTables(database, 0, FORMAT_VERSION);
    database.exec(`pragma user_version = ${FORMAT_VERSION}; commit`);
    database.close();
    const first = readFileSync(model).subarray(0, PAGE_BYTES);
    first.set([2, 2], 18);
    first.fill(0, 28, 40);
    first.fill(0, 92, 96);
    changeHead(work, PAGE_BYTES, (head) => first.copy(head));
  } finally {
    rmSync(model, { force: true });
  }
}

function changeHead(path: string, bytes: number, change: (head: Buffer) => void): void {
  const fd = openSync(path, "r+");
  try {
    const head = Buffer.alloc(bytes);
    if (readSync(fd, head, 0, bytes, 0) < bytes) return;
    change(head);
    writeSync(fd, head, 0, bytes, 0);
  } finally {
    closeSync(fd);
  }
}
