// Questions about the metadata of a million objects, and searches of vectors, one at a time over HTTP.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { createRandom } from "@platform/testing/random";
import { findFreePort } from "../../../tests/stage/process.ts";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { Row } from "../../harness/report.ts";
import { runRounds } from "../../harness/rounds.ts";
import { takeMedian } from "../../harness/statistics.ts";
import { fillMillion } from "../fill.ts";
import { rankPlainly } from "../plain-ranking.ts";
import { CREDENTIALS, createPresigner } from "../presign.ts";
import { makePlatformVaultd } from "../stores/platform-vaultd.ts";

const VECTORS = 50_000;
const DIMENSION = 384;
const K = 10;
const LANES = 32;
/** Vectors of one round. */
const QUERIES = 20;
const SEED = 384;
const PLAIN = "plain JavaScript over Float32Array, in this process";

const STATEMENTS = [
  {
    name: "a million objects: count and size by class",
    sql: "select storage_class, count(*), sum(size) from objects group by storage_class",
  },
  {
    name: "a million objects: by metadata of the user",
    sql: "select count(*) from objects where metadata ->> '$.author' = 'author-7'",
  },
] as const;

interface Entrant {
  readonly row: Row;
  readonly run: () => Promise<void>;
}

/** Metadata and vectors. */
export const search: BenchCase = {
  name: "search",
  title: "Questions about metadata and searches of vectors",
  isOptional: true,
  run: async (context) => {
    await using workspace = new Workspace();
    const folder = join(workspace.folder, "store");
    mkdirSync(folder);
    context.say("  filling");
    await fillMillion(join(folder, "data"));
    const store = await startStore(context, workspace, folder);
    const random = createRandom(SEED);
    const makeVector = (): number[] => Array.from({ length: DIMENSION }, () => random() - 0.5);
    const vectors = Array.from({ length: VECTORS }, makeVector);
    await putVectors(store, vectors);
    const [firstMs] = await store.search(makeVector(), false);
    const entrants = listEntrants(store, vectors, makeVector);
    await runRounds(
      context,
      entrants,
      async ({ run }) => {
        const times: number[] = [];
        for (let n = 0; n < QUERIES; n += 1) {
          const begun = performance.now();
          await run();
          times.push(performance.now() - begun);
        }
        return { ms: takeMedian(times) };
      },
      ({ ms }) => `${ms!.toFixed(1)} ms`,
    );
    return {
      work: `SQL on the view of a million objects; the ${K} nearest of ${VECTORS} vectors of ${DIMENSION} dimensions. The median of ${QUERIES} questions, one at a time.`,
      columns: [{ key: "ms", title: "ms", digits: 1 }],
      rows: entrants.map(({ row }) => row),
      ratioColumns: [],
      goals: [],
      remarks: [
        `- The first search after the start, which reads the vectors: ${firstMs.toFixed(0)} ms.`,
      ],
    };
  },
};

function listEntrants(
  store: Store,
  vectors: readonly number[][],
  makeVector: () => number[],
): Entrant[] {
  const rows = vectors.map((vector) => Float32Array.from(vector));
  const describe = (name: string, isOurs: boolean, run: () => Promise<void>): Entrant => ({
    row: { name, isOurs, version: "", rounds: [] },
    run,
  });
  return [
    ...STATEMENTS.map(({ name, sql }) => describe(`vault: ${name}`, true, () => store.ask(sql))),
    ...[false, true].map((isExact) =>
      describe(`vault: k = ${K}${isExact ? ", exact" : ""}`, true, async () => {
        await store.search(makeVector(), isExact);
      }),
    ),
    describe(PLAIN, false, async () => {
      rankPlainly(rows, Float32Array.from(makeVector()), K);
    }),
  ];
}

interface Store {
  send(method: string, path: string, query: Record<string, string>, body?: string): Promise<string>;
  ask(sql: string): Promise<void>;
  /** Resolves with the milliseconds. */
  search(vector: readonly number[], isExact: boolean): Promise<[ms: number]>;
}

async function startStore(
  context: BenchContext,
  workspace: Workspace,
  folder: string,
): Promise<Store> {
  const store = makePlatformVaultd(context.builds[0]!);
  const port = await findFreePort();
  await store.start({ port, cores: context.cores.all, folder, workspace });
  const origin = `http://127.0.0.1:${port}`;
  const sign = createPresigner(new URL(origin).host, CREDENTIALS);
  const send: Store["send"] = async (method, path, query, body) => {
    const answer = await fetch(origin + sign(method, path, query), {
      method,
      ...(body === undefined ? {} : { body }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text;
  };
  return {
    send,
    ask: async (sql) => {
      await send("GET", "/bench", { sql });
    },
    search: async (vector, exact) => {
      const begun = performance.now();
      await send(
        "POST",
        "/vectors",
        { "vector-search": "" },
        JSON.stringify({ vector, k: K, exact }),
      );
      return [performance.now() - begun];
    },
  };
}

async function putVectors(store: Store, vectors: readonly number[][]): Promise<void> {
  await store.send("PUT", "/vectors", {});
  const index = JSON.stringify({ dimension: DIMENSION, metric: "cosine" });
  await store.send("PUT", "/vectors", { "vector-index": "" }, index);
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < vectors.length) {
      const number = next++;
      await store.send("PUT", `/vectors/${number}`, {}, "");
      const body = JSON.stringify(vectors[number]!.map(Math.fround));
      await store.send("PUT", `/vectors/${number}`, { vector: "" }, body);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}
