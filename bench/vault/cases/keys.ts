// Encryption with named keys, beside that with the key of the store, and keys that are wrapped again.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { Row } from "../../harness/report.ts";
import { runRounds } from "../../harness/rounds.ts";
import { runWrk } from "../../harness/wrk.ts";
import { type BenchStore, inLanes, startStore } from "../bench-store.ts";
import { CREDENTIALS, createPresigner } from "../presign.ts";

const BYTES = 4_096;
const CONNECTIONS = 32;
/** Objects that are read, and names that are written, in each bucket. */
const OBJECTS = 2_000;
/** Time of reads that are not counted. */
const WARM_SECONDS = 2;
/** Objects whose keys are wrapped again. */
const WRAPPED = 20_000;

const PUT = "PUT, SSE-S3";
const GET = "GET, SSE-S3";
const QUIET = "PUT, no rotation";

interface Entrant {
  readonly row: Row;
  readonly run: () => Promise<Record<string, number>>;
}

/** Named keys and rotations. */
export const keys: BenchCase = {
  name: "keys",
  title: "Encryption keys",
  isOptional: true,
  run: async (context) => {
    await using workspace = new Workspace();
    const store = await startStore(context, workspace, join(workspace.folder, "store"));
    context.say("  filling");
    await fill(store);
    const entrants = listEntrants(context, workspace, store);
    await runRounds(
      context,
      entrants,
      (entrant) => entrant.run(),
      (figures) =>
        Object.entries(figures)
          .map(([key, value]) => `${value.toFixed(0)} ${key}`)
          .join(", "),
    );
    const atLeast = (against: string, name: string, share: number) => ({
      column: "perS",
      against,
      ours: [name],
      atLeast: share,
    });
    return {
      work: `Objects of 4 KiB with ${CONNECTIONS} connections; the buckets have the key of the store, or a named key, as their default, and are measured in turns. Rotations wrap the keys of ${WRAPPED} objects again, from the request until the former version is named by none. All on one store, in one run.`,
      columns: [
        { key: "perS", title: "requests/s", digits: 0 },
        { key: "p99Us", title: "p99 µs", digits: 0 },
        { key: "rowsPerS", title: "rows wrapped/s", digits: 0 },
      ],
      rows: entrants.map(({ row }) => row),
      ratioColumns: [],
      goals: [
        atLeast(PUT, "PUT, SSE-KMS", 0.9),
        atLeast(GET, "GET, SSE-KMS", 0.95),
        atLeast(QUIET, "PUT, during a rotation", 0.8),
      ],
    };
  },
};

async function fill({ send, admin }: BenchStore): Promise<void> {
  for (const name of ["used", "turned"]) await admin("POST", "/admin/encryption-keys", { name });
  const body = new Uint8Array(BYTES).fill(7);
  for (const [bucket, algorithm, count] of [
    ["stored", "<SSEAlgorithm>AES256</SSEAlgorithm>", OBJECTS],
    ["named", toNamed("used"), OBJECTS],
    ["turned", toNamed("turned"), WRAPPED],
  ] as const) {
    await send("PUT", `/${bucket}`);
    await send("PUT", `/${bucket}`, { query: { encryption: "" }, body: toDefault(algorithm) });
    await inLanes(count, (n) => send("PUT", `/${bucket}/${n}`, { body }));
  }
}

function toNamed(name: string): string {
  return `<SSEAlgorithm>aws:kms</SSEAlgorithm><KMSMasterKeyID>alias/${name}</KMSMasterKeyID>`;
}

function toDefault(inner: string): string {
  return `<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault>${inner}</ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>`;
}

function listEntrants(context: BenchContext, workspace: Workspace, store: BenchStore): Entrant[] {
  const make = (name: string, isOurs: boolean, work: Entrant["run"]): Entrant => ({
    row: { name, isOurs, version: "", rounds: [] },
    run: work,
  });
  const load = (method: string, bucket: string, time = context.seconds) =>
    loadOnce(context, workspace, store, { method, bucket, seconds: time });
  const seconds = Math.ceil(context.seconds / 2);
  const puts = alternate((bucket) => load("PUT", bucket, seconds));
  const gets = alternate((bucket) => load("GET", bucket, seconds));
  return [
    make(PUT, false, () => puts("stored")),
    make("PUT, SSE-KMS", true, () => puts("named")),
    make(GET, false, () => gets("stored")),
    make("GET, SSE-KMS", true, () => gets("named")),
    make("rotation", true, async () => ({ rowsPerS: WRAPPED / (await rotate(store)) })),
    make(QUIET, false, () => load("PUT", "stored")),
    make("PUT, during a rotation", true, async () => {
      const stop = new AbortController();
      const rotating = rotateUntil(store, stop.signal);
      try {
        return await load("PUT", "stored");
      } finally {
        stop.abort();
        await rotating;
      }
    }),
  ];
}

type Bucket = "stored" | "named";
type Figures = Record<string, number>;

/**
 * Both buckets in turns within one measurement, in the order A B B A: what the store has to do besides, such as restarts of its
 * log, differs more from one second to the next than the two do. The first one that is asked for measures both.
 */
function alternate(
  load: (bucket: Bucket) => Promise<Figures>,
): (bucket: Bucket) => Promise<Figures> {
  let other: { bucket: Bucket; figures: Figures } | undefined;
  return async (bucket) => {
    const known = other;
    other = undefined;
    if (known?.bucket === bucket) return known.figures;
    const second = bucket === "stored" ? "named" : "stored";
    const [a1, b1, b2, a2] = [
      await load(bucket),
      await load(second),
      await load(second),
      await load(bucket),
    ];
    other = { bucket: second, figures: joinHalves(b1, b2) };
    return joinHalves(a1, a2);
  };
}

function joinHalves(one: Figures, two: Figures): Figures {
  return {
    perS: (one["perS"]! + two["perS"]!) / 2,
    p99Us: Math.max(one["p99Us"]!, two["p99Us"]!),
  };
}

async function loadOnce(
  context: BenchContext,
  workspace: Workspace,
  { origin }: BenchStore,
  { method, bucket, seconds: measured }: { method: string; bucket: string; seconds: number },
): Promise<Figures> {
  const sign = createPresigner(new URL(origin).host, CREDENTIALS);
  const folder = join(workspace.folder, "targets");
  mkdirSync(folder, { recursive: true });
  const targetsPath = join(folder, `${method}-${bucket}.txt`);
  const targets = Array.from({ length: OBJECTS }, (_, n) => sign(method, `/${bucket}/${n}`));
  writeFileSync(targetsPath, `${targets.join("\n")}\n`);
  const run = (seconds: number) =>
    runWrk({
      url: origin,
      connections: CONNECTIONS,
      seconds,
      cycle: { method, targetsPath, bodyBytes: method === "PUT" ? BYTES : 0 },
      cores: context.cores.load,
      scratch: workspace.folder,
    });
  // Rows that the other bucket has left in the store's memory are gone, and those of this one are there.
  if (method === "GET") await run(WARM_SECONDS);
  const { requests, durationUs, failed, p99Us } = await run(measured);
  if (failed > 0) throw new Error(`${failed} requests failed`);
  return { perS: (requests * 1_000_000) / durationUs, p99Us };
}

async function rotateUntil(store: BenchStore, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await rotate(store);
}

// Resolves to the time from the request until only the new version is named, in seconds.
async function rotate({ admin }: BenchStore): Promise<number> {
  const begun = performance.now();
  await admin("POST", "/admin/encryption-keys/turned/rotate");
  for (;;) {
    const text = await admin("GET", "/admin/encryption-keys/turned");
    const { versions } = JSON.parse(text) as { versions: { objects: number }[] };
    const [, ...former] = versions;
    if (former.every(({ objects }) => objects === 0)) return (performance.now() - begun) / 1_000;
    await sleep(20);
  }
}
