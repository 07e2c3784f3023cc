// The share of the nearest vectors that a search finds, against a plain comparison with each, which knows no index.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createRandom } from "@platform/testing/random";
import { VECTOR_METRICS, type VectorMetric } from "../../src/model/vector.ts";
import { compileFilter, type Condition } from "../../src/search/filter.ts";
import { FILTER_COLUMNS, VectorSearch } from "../../src/search/vector-search.ts";
import { nameVector, VectorRig } from "./vector-rig.ts";

/** `VAULT_RECALL_VECTORS=200000` is the long form, with 384 dimensions. */
const COUNT = Number(process.env["VAULT_RECALL_VECTORS"] ?? 2_000);
const IS_LONG = COUNT > 10_000;
const DIMENSION = IS_LONG ? 384 : 40;
const QUERIES = IS_LONG ? 8 : 3;
/** A filter reads the columns of all objects. */
const FILTERED_QUERIES = 2;
const K = 10;
const RECALL_MIN = 0.99;
const MEMORY_BYTES = 1024 * 1024 * 1024;
const POOL = 2 ** 18;

type Make = (at: Float32Array) => void;

/** Writers of vectors of several kinds. */
function createKinds(): Record<string, Make> {
  const random = createRandom(384);
  const pool = Float32Array.from(
    { length: POOL },
    () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random()),
  );
  // The low bits of the generator repeat soon.
  const normal = (): number => pool[Math.floor(random() * POOL)]!;
  const fill = (at: Float32Array, make: (index: number) => number): void => {
    for (let index = 0; index < at.length; index += 1) at[index] = make(index);
  };
  const centers = Array.from({ length: 50 }, () => {
    const center = new Float32Array(DIMENSION);
    fill(center, () => 3 * normal());
    return center;
  });
  return {
    uniform: (at) => fill(at, () => random() - 0.5),
    clustered: (at) => {
      const center = centers[Math.floor(random() * centers.length)]!;
      fill(at, (index) => center[index]! + 0.3 * normal());
    },
    "nearly equal": (at) => fill(at, (index) => centers[0]![index]! + 1e-4 * normal()),
    "of wild scale": (at) => {
      const scale = 10 ** (20 * random() - 10);
      fill(at, () => scale * normal());
    },
  };
}

/** All vectors, one after the other, and which of them are there. */
class Oracle {
  readonly values = new Float32Array(COUNT * DIMENSION);
  readonly isThere = new Uint8Array(COUNT).fill(1);

  row(number: number): Float32Array {
    return this.values.subarray(number * DIMENSION, (number + 1) * DIMENSION);
  }

  measure(query: Float32Array, number: number): Record<VectorMetric, number> {
    const start = number * DIMENSION;
    let [dot, squares, differences, ownSquares] = [0, 0, 0, 0];
    for (let index = 0; index < DIMENSION; index += 1) {
      const [own, other] = [query[index]!, this.values[start + index]!];
      dot += own * other;
      squares += other * other;
      ownSquares += own * own;
      differences += (own - other) * (own - other);
    }
    const cosine = 1 - dot / Math.sqrt(squares * ownSquares);
    return { cosine, euclidean: Math.sqrt(differences), dot: -dot };
  }

  /** The distance of the last of the k nearest. */
  findBounds(query: Float32Array, isWanted: (number: number) => boolean) {
    const nearest: Record<VectorMetric, number[]> = { cosine: [], euclidean: [], dot: [] };
    for (let number = 0; number < COUNT; number += 1) {
      if (this.isThere[number] === 0 || !isWanted(number)) continue;
      const distances = this.measure(query, number);
      for (const metric of VECTOR_METRICS) insert(nearest[metric], distances[metric]);
    }
    return nearest;
  }
}

// Keeps the k smallest in order.
function insert(sorted: number[], value: number): void {
  if (sorted.length === K && value >= sorted[K - 1]!) return;
  const at = sorted.findIndex((other) => other > value);
  sorted.splice(at === -1 ? sorted.length : at, 0, value);
  if (sorted.length > K) sorted.pop();
}

interface Asked {
  readonly rig: VectorRig;
  readonly search: VectorSearch;
  readonly oracle: Oracle;
  readonly make: Make;
}

/** Filters, and the numbers that they match: all, 1 %, 0.1 %, eleven. A key is its number and 1. */
const FILTERS: [filter: object | undefined, isWanted: (number: number) => boolean][] = [
  [undefined, () => true],
  [{ size: { $lte: COUNT / 100 } }, (number) => number + 1 <= COUNT / 100],
  [{ "tags.mod": "7" }, (number) => (number + 1) % 1_000 === 7],
  [{ size: { $lte: 11 } }, (number) => number + 1 <= 11],
];

/** A question, and the distances of the nearest that match its filter. */
interface Question {
  readonly query: Float32Array;
  readonly nearest: Record<VectorMetric, number[]>;
}

function makeQuestions(
  { oracle, make }: Asked,
  rounds: number,
  isWanted: (number: number) => boolean,
): Question[] {
  return Array.from({ length: rounds }, () => {
    const query = new Float32Array(DIMENSION);
    make(query);
    return { query, nearest: oracle.findBounds(query, isWanted) };
  });
}

// The found share of the nearest by each metric. A change of the metric makes the matrix anew: its questions are in a row.
function measureRecall(asked: Asked, what: string): void {
  const filters = FILTERS.map(([filter, isWanted]) => ({
    name: JSON.stringify(filter ?? "all"),
    isWanted,
    condition: filter === undefined ? undefined : compileFilter(filter, FILTER_COLUMNS),
    questions: makeQuestions(asked, filter === undefined ? QUERIES : FILTERED_QUERIES, isWanted),
  }));
  for (const metric of VECTOR_METRICS) {
    for (const { name, isWanted, condition, questions } of filters) {
      let [found, expected] = [0, 0];
      for (const { query, nearest } of questions) {
        const label = `${what}, ${metric}, ${name}`;
        const keys = ask(asked, query, metric, condition);
        found += judge(asked.oracle, keys, { query, nearest, metric, isWanted, label });
        expected += nearest[metric].length;
      }
      const recall = found / expected;
      assert.ok(recall >= RECALL_MIN, `${what}, ${metric}, ${name}: ${recall}`);
    }
  }
}

function ask(
  { rig, search }: Asked,
  vector: Float32Array,
  metric: VectorMetric,
  condition: Condition | undefined,
): string[] {
  const { matches } = search.search(rig.connection, {
    path: "",
    bucket: 1,
    index: { dimension: DIMENSION, metric },
    vector,
    k: K,
    condition,
    exceptKey: undefined,
    includesVectors: false,
    isExact: false,
  });
  return matches.map(({ key }) => key);
}

interface Expected extends Question {
  readonly metric: VectorMetric;
  readonly isWanted: (number: number) => boolean;
  readonly label: string;
}

// The number of results that are among the nearest. Of equal distances, any may be among them.
function judge(
  oracle: Oracle,
  keys: readonly string[],
  { query, nearest, metric, isWanted, label }: Expected,
): number {
  assert.equal(keys.length, nearest[metric].length, `${label}: results`);
  assert.equal(new Set(keys).size, keys.length);
  const bound = nearest[metric].at(-1)!;
  let found = 0;
  for (const key of keys) {
    const number = Number(key) - 1;
    assert.ok(oracle.isThere[number] === 1 && isWanted(number), `${label}: ${key}`);
    if (oracle.measure(query, number)[metric] <= bound) found += 1;
  }
  return found;
}

for (const kind of ["uniform", "clustered", "nearly equal", "of wild scale"]) {
  test(`of ${COUNT} vectors that are ${kind}, at least 99 % of the nearest are found, also after deletions and a restart`, (t) => {
    const folder = mkdtempSync(join(tmpdir(), "recall-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const make = createKinds()[kind]!;
    const rig = new VectorRig(t, join(folder, "index.sqlite"));
    const oracle = new Oracle();
    rig.connection.database.exec("begin");
    for (let number = 0; number < COUNT; number += 1) {
      make(oracle.row(number));
      rig.add(oracle.row(number));
    }
    const search = new VectorSearch(MEMORY_BYTES);
    measureRecall({ rig, search, oracle, make }, kind);
    // The matrix in memory still has them.
    for (let number = 0; number < COUNT; number += 1) {
      if (number % 10 >= 3) continue;
      rig.remove(nameVector(number + 1));
      oracle.isThere[number] = 0;
    }
    measureRecall({ rig, search, oracle, make }, `${kind}, after deletions`);
    rig.reopen();
    const restarted = new VectorSearch(MEMORY_BYTES);
    measureRecall({ rig, search: restarted, oracle, make }, `${kind}, after a restart`);
  });
}
