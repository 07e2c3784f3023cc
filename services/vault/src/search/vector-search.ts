// Searches of vectors in one state of the index: candidates from matrices in memory, ranked by the vectors in the index.
import type { IndexConnection } from "../index/schema.ts";
import { damagedRow, matchesSeal, sealVector } from "../index/seal.ts";
import { decodeVector } from "../model/vector.ts";
import type { FilterColumns } from "./filter.ts";
import { FLOATS, INTEGERS, type RowForm } from "./row-form.ts";
import { VectorArena } from "./vector-arena.ts";
import { measureDistance, prepare, VectorMatrix } from "./vector-matrix.ts";
import type { VectorAnswer, VectorMatch, VectorQuestion } from "./vector-messages.ts";

/** The columns of filters, in statements in which `c` is the table `current`. */
export const FILTER_COLUMNS: FilterColumns = {
  key: "cast(c.key as text)",
  size: "c.size",
  content_type: "coalesce(c.detail ->> '$.headers.contentType', 'binary/octet-stream')",
  last_modified: "strftime('%Y-%m-%dT%H:%M:%fZ', c.modified / 1000.0, 'unixepoch')",
  storage_class: "c.class",
  tags: "coalesce(c.tags, '{}')",
  metadata: "coalesce(c.detail -> '$.metadata', '{}')",
  extension:
    "lower(case when instr(cast(c.key as text), '.') > 0 then substr(cast(c.key as text), " +
    "length(rtrim(cast(c.key as text), replace(cast(c.key as text), '.', ''))) + 1) end)",
};

/** Vectors from which the center of a matrix is computed. */
const SAMPLE_ROWS = 2_000;
/** Candidates for each result; those that are not live any more are among them. */
const CANDIDATES_PER_RESULT = 5;
const CANDIDATES_MIN = 50;
/** A filter that leaves fewer vectors is answered without a matrix. */
const FEW = 500;
/** A search notices within so many rows that it is to stop. */
const ROWS_PER_CHECK = 256;
const ROWS_PER_READ = 200;
/** Share of rows without a vector at which a matrix is made again. */
const GONE_SHARE_MAX = 0.25;
/** Share of the memory for the vectors of a bucket that is searched exactly. */
const EXACT_SHARE_MAX = 0.5;
const LIVE = "c.bucket = v.bucket and c.key = v.key and c.version = v.version";
const COLUMNS =
  "v.id, v.bucket, v.key, v.version, v.data, v.seal, coalesce(c.tags, '{}') as tags, " +
  "coalesce(c.detail -> '$.metadata', '{}') as metadata";

interface FoundRow {
  id: number;
  bucket: number;
  key: Uint8Array;
  version: string;
  data: Uint8Array;
  seal: number;
  tags: string;
  metadata: string;
}

/** Nobody waits for the search any more. */
export class SearchStopped extends Error {
  override readonly name = "SearchStopped";
}

/** Called for each row that is read; throws SearchStopped. */
type CheckStop = () => void;

/** Searches with the matrices of the buckets that were asked last. */
export class VectorSearch {
  readonly #arena: VectorArena;
  readonly #memoryBytes: number;
  readonly #checkStop: CheckStop;
  /** By form and bucket. */
  readonly #matrices = new Map<string, VectorMatrix>();
  #questions = 0;

  /**
   * Matrices take up to `memoryBytes`; vectors that do not fit are read from the index. `isStopped` is asked now and then: once it
   * is true, the search throws SearchStopped.
   */
  constructor(memoryBytes: number, isStopped: () => boolean = () => false) {
    this.#memoryBytes = memoryBytes;
    let rows = 0;
    this.#checkStop = () => {
      rows += 1;
      if (rows % ROWS_PER_CHECK === 0 && isStopped()) throw new SearchStopped();
    };
    this.#arena = new VectorArena(memoryBytes);
  }

  /** Searches in a transaction of `connection`. */
  search(connection: IndexConnection, question: VectorQuestion): VectorAnswer {
    const checkStop = this.#checkStop;
    const wanted =
      question.condition === undefined ? undefined : findIds(connection, question, checkStop);
    const ranking = new Ranking(question);
    const total = countVectors(connection, question.bucket);
    const form = this.#chooseForm(question, wanted?.length, total);
    if (form === undefined) {
      if (wanted === undefined) rankAfter(connection, question, 0, ranking, checkStop);
      else rankIds(connection, wanted, ranking, checkStop);
      return ranking.finish(wanted?.length ?? total);
    }
    const matrix = this.#load(connection, question, form);
    const batch = Math.max(CANDIDATES_MIN, CANDIDATES_PER_RESULT * question.k);
    matrix.search(question.vector, wanted, batch, (ids, nextBound) => {
      for (const id of rankIds(connection, ids, ranking, checkStop)) {
        if (!existsVector(connection, id)) matrix.forget(id);
      }
      return ranking.worst > nextBound;
    });
    const { lastId } = matrix;
    if (wanted === undefined) rankAfter(connection, question, lastId, ranking, checkStop);
    else {
      const later = wanted.filter((id) => id > lastId);
      rankIds(connection, later, ranking, checkStop);
    }
    return ranking.finish(wanted?.length ?? total);
  }

  /** Forgets all matrices: another copy of the index is read. */
  clear(): void {
    for (const matrix of this.#matrices.values()) matrix.release();
    this.#matrices.clear();
  }

  // Undefined: the vectors are read from the index.
  #chooseForm(
    { isExact, index }: VectorQuestion,
    wanted: number | undefined,
    total: number,
  ): RowForm | undefined {
    if (wanted !== undefined && wanted <= FEW) return undefined;
    if (!isExact) return INTEGERS;
    // Exact searches of one bucket do not take the memory of all others.
    const bytes = total * index.dimension * FLOATS.bytes;
    return bytes <= this.#memoryBytes * EXACT_SHARE_MAX ? FLOATS : undefined;
  }

  // Up to date, unless the memory is full: vectors after its last one are read from the index.
  #load(
    connection: IndexConnection,
    { bucket, index }: VectorQuestion,
    form: RowForm,
  ): VectorMatrix {
    const name = `${form.bytes} ${bucket}`;
    let matrix = this.#matrices.get(name);
    const isStale =
      matrix !== undefined &&
      (matrix.dimension !== index.dimension ||
        matrix.metric !== index.metric ||
        matrix.goneRows > GONE_SHARE_MAX * matrix.rows + FEW);
    if (isStale || matrix === undefined) {
      matrix?.release();
      const center = computeCenter(connection, bucket, index);
      matrix = new VectorMatrix(this.#arena, form, index.metric, center);
      this.#matrices.set(name, matrix);
    }
    this.#questions += 1;
    matrix.usedAt = this.#questions;
    const read = connection.sql(
      "select id, data from vectors where bucket = ? and id > ? order by id limit ?",
      true,
    );
    // Several at once: a step of an iterator costs a quarter more.
    for (let after = matrix.lastId; ;) {
      const rows = read.all(bucket, after, ROWS_PER_READ) as unknown as [number, Uint8Array][];
      for (const [id, data] of rows) {
        this.#checkStop();
        after = id;
        if (data.length !== 4 * index.dimension) continue;
        while (!matrix.add(id, data)) if (!this.#forgetOldest(matrix)) return matrix;
      }
      if (rows.length < ROWS_PER_READ) return matrix;
    }
  }

  #forgetOldest(except: VectorMatrix): boolean {
    let oldest: [string, VectorMatrix] | undefined;
    for (const entry of this.#matrices) {
      const [, matrix] = entry;
      if (matrix === except || matrix.rows === 0) continue;
      if (oldest === undefined || matrix.usedAt < oldest[1].usedAt) oldest = entry;
    }
    if (oldest === undefined) return false;
    oldest[1].release();
    this.#matrices.delete(oldest[0]);
    return true;
  }
}

/** The nearest vectors so far. */
class Ranking {
  readonly #question: VectorQuestion;
  readonly #best: { distance: number; row: FoundRow }[] = [];

  constructor(question: VectorQuestion) {
    this.#question = question;
  }

  /** The largest distance of a result; infinite while there are fewer than k. */
  get worst(): number {
    const { k } = this.#question;
    return this.#best.length < k ? Number.POSITIVE_INFINITY : this.#best[k - 1]!.distance;
  }

  add(row: FoundRow): void {
    const { vector, index, k, exceptKey } = this.#question;
    if (exceptKey !== undefined && Buffer.from(row.key).toString() === exceptKey) return;
    if (row.data.length !== 4 * index.dimension) return;
    const distance = measureDistance(vector, decodeVector(row.data), index.metric);
    if (distance >= this.worst) return;
    if (!matchesSeal(row.seal, sealVector(row))) throw damagedRow("a vector");
    let at = this.#best.length;
    while (at > 0 && this.#best[at - 1]!.distance > distance) at -= 1;
    this.#best.splice(at, 0, { distance, row });
    if (this.#best.length > k) this.#best.pop();
  }

  finish(searched: number): VectorAnswer {
    const { includesVectors } = this.#question;
    const matches = this.#best.map(({ distance, row }): VectorMatch => {
      const { key, version, metadata, tags, data } = row;
      const vector = includesVectors ? decodeVector(data) : undefined;
      const text = Buffer.from(key).toString();
      return { key: text, versionId: version, distance, metadata, tags, vector };
    });
    return { matches, searched };
  }
}

// Ranks live ones of some vectors. Returns the ids of the others.
function rankIds(
  connection: IndexConnection,
  ids: readonly number[] | Float64Array,
  ranking: Ranking,
  checkStop: CheckStop,
): number[] {
  const find = connection.sql(
    `select ${COLUMNS} from vectors v cross join current c on ${LIVE} where v.id = ?`,
  );
  const others: number[] = [];
  for (const id of ids) {
    checkStop();
    const row = find.get(id) as unknown as FoundRow | undefined;
    if (row === undefined) others.push(id);
    else ranking.add(row);
  }
  return others;
}

// Versions are looked up only for vectors that may be results.
function rankAfter(
  connection: IndexConnection,
  { bucket, index, vector }: VectorQuestion,
  after: number,
  ranking: Ranking,
  checkStop: CheckStop,
): void {
  const rows = connection
    .sql("select id, data from vectors where bucket = ? and id > ? order by id", true)
    .iterate(bucket, after) as Iterable<unknown> as Iterable<[number, Uint8Array]>;
  for (const [id, data] of rows) {
    checkStop();
    if (data.length !== 4 * index.dimension) continue;
    const distance = measureDistance(vector, decodeVector(data), index.metric);
    if (distance < ranking.worst) rankIds(connection, [id], ranking, checkStop);
  }
}

// In the order of the ids. Both indexes are read in the order of keys.
function findIds(
  connection: IndexConnection,
  { bucket, condition }: VectorQuestion,
  checkStop: CheckStop,
): Float64Array {
  const { sql, values } = condition!;
  // The text is the client's filter: such statements are not kept.
  const statement = connection.database.prepare(
    `select v.id as id from vectors v indexed by vectors_by_version cross join current c on ${LIVE} ` +
      `where v.bucket = ? and ${sql}`,
  );
  statement.setReturnArrays(true);
  const ids: number[] = [];
  const rows = statement.iterate(bucket, ...values) as Iterable<unknown> as Iterable<[number]>;
  for (const [id] of rows) {
    checkStop();
    ids.push(id);
  }
  return Float64Array.from(ids).sort();
}

function existsVector(connection: IndexConnection, id: number): boolean {
  return connection.sql("select 1 from vectors where id = ?").get(id) !== undefined;
}

function countVectors(connection: IndexConnection, bucket: number): number {
  return Number(
    connection.sql("select count(*) as n from vectors where bucket = ?").get(bucket)?.["n"],
  );
}

function computeCenter(
  connection: IndexConnection,
  bucket: number,
  { dimension, metric }: VectorQuestion["index"],
): Float64Array {
  const center = new Float64Array(dimension);
  const rows = connection
    .sql("select data from vectors where bucket = ? order by id limit ?")
    .all(bucket, SAMPLE_ROWS) as { data: Uint8Array }[];
  const fitting = rows.filter(({ data }) => data.length === 4 * dimension);
  const origin = new Float64Array(dimension);
  const values = new Float64Array(dimension);
  for (const { data } of fitting) {
    prepare(data, metric, values, origin);
    for (let at = 0; at < dimension; at += 1) center[at]! += values[at]! / fitting.length;
  }
  return center;
}
