// Candidates from 8-bit integers against exact searches: kinds of vectors, deletions, filters, and little memory.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRandom } from "@platform/testing/random";
import {
  decodeVector,
  encodeVector,
  VECTOR_METRICS,
  type VectorMetric,
} from "../../src/model/vector.ts";
import { compileFilter } from "../../src/search/filter.ts";
import type { VectorQuestion } from "../../src/search/vector-messages.ts";
import { FILTER_COLUMNS, VectorSearch } from "../../src/search/vector-search.ts";
import { VectorRig } from "./vector-rig.ts";

/** `VAULT_VECTORS=20000` is the long form, with 384 dimensions. */
const COUNT = Number(process.env["VAULT_VECTORS"] ?? 1_200);
const DIMENSION = COUNT > 10_000 ? 384 : 40;
const SEED = 36;
const K = 10;
const MIB = 1024 * 1024;
/** So little that exact searches read all vectors from the index. */
const NO_MEMORY = 300_000;

type Make = () => number[];

/** Vectors of several kinds. */
function createKinds(random: () => number): Record<string, Make> {
  const normal = (): number =>
    Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const fill = (make: (index: number) => number): number[] =>
    Array.from({ length: DIMENSION }, (_, index) => make(index));
  const centers = Array.from({ length: 20 }, () => fill(() => 3 * normal()));
  const base = fill(normal);
  return {
    uniform: () => fill(() => random() - 0.5),
    clustered: () => {
      const center = centers[Math.floor(random() * centers.length)]!;
      return fill((index) => center[index]! + 0.3 * normal());
    },
    "nearly equal": () => fill((index) => base[index]! + 1e-4 * normal()),
    "of wild scale": () => {
      const scale = 10 ** (20 * random() - 10);
      return fill(() => scale * normal());
    },
    "with many zeros": () =>
      fill((index) => (index % 16 === 0 && random() < 0.5 ? normal() : index === 1 ? 1 : 0)),
  };
}

function ask(
  search: VectorSearch,
  rig: VectorRig,
  metric: VectorMetric,
  vector: readonly number[],
  more: Partial<VectorQuestion> = {},
): string[] {
  const question: VectorQuestion = {
    path: "",
    bucket: 1,
    index: { dimension: DIMENSION, metric },
    vector: decodeVector(encodeVector(vector)),
    k: K,
    condition: undefined,
    exceptKey: undefined,
    includesVectors: false,
    isExact: false,
    ...more,
  };
  return search
    .search(rig.connection, question)
    .matches.map(({ key, distance }) => `${key} ${distance}`);
}

const readDistance = (text: string): string | undefined => text.split(" ")[1];

for (const kind of ["uniform", "clustered", "nearly equal", "of wild scale", "with many zeros"]) {
  test(`vectors that are ${kind}: the nearest ones are those of an exact search`, async (t) => {
    const random = createRandom(SEED);
    const make = createKinds(random)[kind]!;
    const rig = new VectorRig(t);
    rig.connection.database.exec("begin");
    const keys = Array.from({ length: COUNT }, () => rig.add(make()));
    for (const metric of VECTOR_METRICS) {
      const search = new VectorSearch(256 * MIB);
      const plain = new VectorSearch(NO_MEMORY);
      const compare = (what: string): void => {
        for (let round = 0; round < 5; round += 1) {
          const query = make();
          // Of equal distances, any may be among the results.
          const found = ask(search, rig, metric, query).map(readDistance);
          const expected = ask(plain, rig, metric, query, { isExact: true }).map(readDistance);
          const exact = ask(search, rig, metric, query, { isExact: true }).map(readDistance);
          assert.deepEqual(found, expected, `${metric}, ${what}`);
          assert.deepEqual(exact, expected, `${metric}, ${what}, exact`);
          assert.equal(found.length, K);
        }
      };
      compare("all");
      for (let n = 0; n < 50; n += 1) keys.push(rig.add(make()));
      compare("after additions");
    }
    for (const key of keys.filter((_, index) => index % 10 < 3)) rig.remove(key);
    const search = new VectorSearch(256 * MIB);
    const query = make();
    const exact = ask(search, rig, "euclidean", query, { isExact: true }).map(readDistance);
    assert.deepEqual(
      ask(search, rig, "euclidean", query).map(readDistance),
      exact,
      "after deletions",
    );
  });
}

test("of vectors that look all the same in 8 bits beside very large ones, none is found twice or missed", (t) => {
  const random = createRandom(SEED);
  const rig = new VectorRig(t);
  rig.connection.database.exec("begin");
  const make = (): number[] => {
    const scale = 10 ** (20 * random() - 10);
    return Array.from({ length: DIMENSION }, () => scale * (random() - 0.5));
  };
  for (let n = 0; n < 3_000; n += 1) rig.add(make());
  const search = new VectorSearch(256 * MIB);
  const plain = new VectorSearch(NO_MEMORY);
  for (let round = 0; round < 20; round += 1) {
    const query = make();
    const found = ask(search, rig, "euclidean", query);
    assert.equal(new Set(found).size, K, found.join("\n"));
    const expected = ask(plain, rig, "euclidean", query, { isExact: true });
    assert.deepEqual(found.map(readDistance), expected.map(readDistance));
  }
});

test("filters that match many, few and eleven vectors return all that an exact search returns", async (t) => {
  const random = createRandom(SEED);
  const make = createKinds(random)["clustered"]!;
  const rig = new VectorRig(t);
  rig.connection.database.exec("begin");
  for (let n = 0; n < COUNT; n += 1) rig.add(make());
  const search = new VectorSearch(256 * MIB);
  const query = make();
  ask(search, rig, "cosine", query);
  for (const filter of [
    { size: { $gt: COUNT / 2 } },
    { size: { $gt: COUNT - COUNT / 4 }, key: { $ne: "x" } },
    { "tags.mod": "7" },
    { size: { $lte: 11 } },
    { size: { $lte: 3 } },
    { size: { $lt: 0 } },
  ]) {
    const condition = compileFilter(filter, FILTER_COLUMNS);
    const found = ask(search, rig, "cosine", query, { condition });
    assert.deepEqual(
      found,
      ask(search, rig, "cosine", query, { condition, isExact: true }),
      JSON.stringify(filter),
    );
  }
});

test("vectors that do not fit in memory are found as well, and buckets take turns", async (t) => {
  const random = createRandom(SEED);
  const make = createKinds(random)["uniform"]!;
  const rig = new VectorRig(t);
  rig.connection.database.exec("begin");
  // A block has a MiB, and one is less than all vectors need.
  const count = Math.ceil((1.5 * MIB) / (Math.ceil(DIMENSION / 16) * 16));
  for (let n = 0; n < count; n += 1) rig.add(make());
  const search = new VectorSearch(1.2 * MIB);
  for (let round = 0; round < 3; round += 1) {
    const query = make();
    assert.deepEqual(
      ask(search, rig, "euclidean", query),
      ask(search, rig, "euclidean", query, { isExact: true }),
    );
  }
});

test("a damaged vector ends the search", (t) => {
  const rig = new VectorRig(t);
  rig.add(Array.from({ length: DIMENSION }, (_, index) => index));
  rig.connection.sql("update vectors set seal = seal + 1").run();
  const search = new VectorSearch(16 * MIB);
  const query = Array.from({ length: DIMENSION }, () => 1);
  assert.throws(() => ask(search, rig, "dot", query), {
    code: "InternalError",
    message: /damaged/,
  });
});
