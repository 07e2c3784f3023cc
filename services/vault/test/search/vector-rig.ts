// An index of vectors without a store around it.
import { DatabaseSync } from "node:sqlite";
import type { TestContext } from "node:test";
import { IndexConnection, makeTables } from "../../src/index/schema.ts";
import { sealVector, sealVersion } from "../../src/index/seal.ts";
import { encodeVector } from "../../src/model/vector.ts";

/** The key of the vector with a number. */
export function nameVector(number: number): string {
  return String(number).padStart(7, "0");
}

/** An index with the tables of vectors, whose rows are written directly. */
export class VectorRig {
  connection: IndexConnection;
  readonly #path: string;
  #next = 0;

  /** In memory without a `path`. */
  constructor(t: TestContext, path = ":memory:") {
    this.#path = path;
    const database = new DatabaseSync(path);
    // Otherwise a long transaction waits for the disk whenever its pages do not fit in the cache.
    database.exec("pragma journal_mode = off; pragma synchronous = off");
    makeTables(database, 0, 4);
    this.connection = new IndexConnection(database);
    t.after(() => this.connection.close());
  }

  /** Commits, and opens the file again. */
  reopen(): void {
    this.connection.database.exec("commit");
    this.connection.close();
    this.connection = new IndexConnection(new DatabaseSync(this.#path));
  }

  /** Adds an object with a vector. Its size is its number, from 1 on; returns its key. */
  add(numbers: ArrayLike<number>): string {
    this.#next += 1;
    const id = this.#next;
    const text = nameVector(id);
    const key = Buffer.from(text);
    const data = encodeVector(Array.from(numbers));
    const row = {
      bucket: 1,
      key,
      seq: id,
      version: "null",
      size: id,
      etag: "",
      modified: 0,
      blob: 1,
      class: "STANDARD",
      checksum: null,
      owner: null,
      tags: `{"mod":"${id % 1_000}"}`,
      retain_mode: null,
      retain_until: null,
      hold: 0,
      detail: "{}",
    };
    this.connection
      .sql(
        "insert into current (bucket, key, seq, version, size, etag, modified, blob, class, tags, hold, detail, seal) values (1, ?, ?, 'null', ?, '', 0, 1, 'STANDARD', ?, 0, '{}', ?)",
      )
      .run(key, id, id, row.tags, sealVersion(row));
    const vector = { id, bucket: 1, key, version: "null", data };
    this.connection
      .sql("insert into vectors values (?, 1, ?, 'null', ?, ?)")
      .run(id, key, data, sealVector(vector));
    return text;
  }

  /** Removes an object and its vector. */
  remove(key: string): void {
    for (const table of ["current", "vectors"])
      this.connection
        .sql(`delete from ${table} where bucket = 1 and key = ?`)
        .run(Buffer.from(key));
  }
}
