// Searches among a million vectors, one at a time over HTTP, beside a plain comparison with each in this process.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Workspace, type BenchCase } from "../../harness/case.ts";
import type { Row } from "../../harness/report.ts";
import { runRounds } from "../../harness/rounds.ts";
import { takeMedian } from "../../harness/statistics.ts";
import { readTreeUsage } from "../../harness/usage.ts";
import { type BenchStore, startStore } from "../bench-store.ts";
import { fillVectors } from "../fill.ts";
import { rankPlainly } from "../plain-ranking.ts";

/** `PLATFORM_BENCH_VECTORS=50000` tries the case with fewer. */
const VECTORS = Number(process.env["PLATFORM_BENCH_VECTORS"] ?? 1_000_000);
/** `PLATFORM_BENCH_VECTORS_FOLDER=DIR` keeps the filled store in a folder, for the next run; it may be filled beside other work. */
const FOLDER = process.env["PLATFORM_BENCH_VECTORS_FOLDER"];
/** A machine that is slower than this is not worth the wait. */
const FILL_MS_MAX = (FOLDER === undefined ? 20 : 90) * 60_000;
const DIMENSION = 384;
const K = 10;
const QUERIES = 10;
/** Of the plain comparison, whose time is multiplied: it would need 1.5 GB. */
const PLAIN_SHARE = 10;
const MEGABYTE = 1e6;
const NUMBERS_MASK = 0xff_ff;

/** A million vectors. */
export const vectors: BenchCase = {
  name: "vectors",
  title: "A million vectors",
  isOptional: true,
  run: async (context) => {
    await using workspace = new Workspace();
    const folder = FOLDER ?? join(workspace.folder, "store");
    const fillSeconds = await fill(folder, (line) => context.say(line));
    const store = await startStore(context, workspace, folder, {
      PLATFORM_VAULT_VECTOR_MEMORY: String(1_024 * 1_024 * 1_024),
    });
    const emptyBytes = measureMemory(store);
    const begun = performance.now();
    await search(store, 0);
    const firstMs = performance.now() - begun;
    const heldBytes = measureMemory(store) - emptyBytes;
    const entrants = listEntrants(store);
    await runRounds(
      context,
      entrants,
      async ({ run, factor }) => {
        const times: number[] = [];
        for (let n = 1; n <= QUERIES; n += 1) {
          const start = performance.now();
          await run(n);
          times.push((performance.now() - start) * factor);
        }
        return { ms: takeMedian(times) };
      },
      ({ ms }) => `${ms!.toFixed(1)} ms`,
    );
    return {
      work: `The ${K} nearest of ${VECTORS} vectors of ${DIMENSION} dimensions by cosine; the median of ${QUERIES} questions, one at a time. The plain comparison is measured on a tenth of them, times ten.`,
      columns: [{ key: "ms", title: "ms", digits: 1 }],
      rows: entrants.map(({ row }) => row),
      ratioColumns: [],
      goals: [],
      remarks: [
        `- Filled in this process with ${(VECTORS / fillSeconds).toFixed(0)} objects/s, each with a vector.`,
        `- The first search after the start, which reads all vectors: ${(firstMs / 1_000).toFixed(1)} s. Memory that it takes: ${(heldBytes / MEGABYTE).toFixed(0)} MB.`,
        "- Goal for k = 10 of a million: below 150 ms.",
      ],
    };
  },
};

/** Fills a store, unless it is filled; returns the seconds that it has taken. */
async function fill(folder: string, say: (line: string) => void): Promise<number> {
  const noteFile = join(folder, `filled-${VECTORS}`);
  if (existsSync(noteFile)) return Number(readFileSync(noteFile, "utf8"));
  say("  filling");
  const data = join(folder, "data");
  const seconds = await fillVectors(data, VECTORS, DIMENSION, makeVector, FILL_MS_MAX);
  say(`  filled in ${seconds.toFixed(0)} s`);
  writeFileSync(noteFile, String(seconds));
  return seconds;
}

interface Entrant {
  readonly row: Row;
  readonly factor: number;
  readonly run: (question: number) => Promise<void>;
}

function listEntrants(store: BenchStore): Entrant[] {
  const make = (name: string, isOurs: boolean, factor: number, run: Entrant["run"]): Entrant => ({
    row: { name, isOurs, version: "", rounds: [] },
    factor,
    run,
  });
  const some = Array.from({ length: VECTORS / PLAIN_SHARE }, (_, number) => makeVector(number));
  return [
    make(`vault: k = ${K}`, true, 1, (question) => search(store, question)),
    make("plain JavaScript over Float32Array, in this process", false, PLAIN_SHARE, async (n) => {
      rankPlainly(some, makeVector(-n), K);
    }),
  ];
}

/** Uniform numbers that depend on `seed` only. */
function makeVector(seed: number): Float32Array {
  const vector = new Float32Array(DIMENSION);
  let state = Math.imul(seed + 1, 0x9e_37_79_b1) | 1;
  for (let at = 0; at < DIMENSION; at += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    vector[at] = (state & NUMBERS_MASK) / NUMBERS_MASK - 0.5;
  }
  return vector;
}

async function search({ send }: BenchStore, question: number): Promise<void> {
  const body = JSON.stringify({ vector: Array.from(makeVector(-question)), k: K });
  const answer = await send("POST", "/vectors", { query: { "vector-search": "" }, body });
  const { results, searched } = (await answer.json()) as { results: object[]; searched: number };
  if (results.length !== K || searched !== VECTORS) throw new Error(`${searched} were searched`);
}

function measureMemory({ pids }: BenchStore): number {
  return pids.reduce((sum, pid) => sum + readTreeUsage(pid).pssBytes, 0);
}
