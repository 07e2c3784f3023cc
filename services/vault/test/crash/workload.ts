// Random work on a store until it is killed. It prints a line before and after each operation.
import { writeSync } from "node:fs";
import { createLogger } from "@platform/kernel/log";
import { StoreError } from "../../src/model/store-error.ts";
import type { Store } from "../../src/object-store.ts";
import { FULL, type HistoryLine, makeBody, type OperationKind, readState } from "./history.ts";
import { openTestStore } from "./stores.ts";

const [root = "", drivesText = "1", seedText = "1", operationsText = "1000000", readersText = "0"] =
  process.argv.slice(2);

/** Small sizes, so that a short recorded run has bodies in the index, in segments and in files. */
const store = await openTestStore(root, Number(drivesText), {
  inlineBytesMax: 1_000,
  segmentRecordBytesMax: 20_000,
  segmentBytesMax: 100_000,
  // A drive that is lost without a cause is a failure by itself.
  log: createLogger({
    service: "workload",
    level: "warn",
    format: "json",
    write: (line) => writeSync(2, line),
  }),
});

let state = Number(seedText) >>> 0;
let nextOperation = Number(seedText) * 1_000_000;
let left = Number(operationsText);

function random(below: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * below);
}

function tell(line: HistoryLine): void {
  writeSync(1, `${JSON.stringify(line)}\n`);
}

for (const bucket of ["plain", "versioned"]) {
  if (store.buckets.find(bucket) !== undefined) continue;
  await store.buckets.create({ bucket, owner: { id: "o", displayName: "o" }, region: "r" });
}
if (store.buckets.require("versioned").versioning === "Unset") {
  await store.buckets.setVersioning("versioned", "Enabled");
}
writeSync(1, `${JSON.stringify({ at: "ready" } satisfies HistoryLine)}\n`);

/** Errors of operations that have changed nothing. */
const REFUSALS = new Set(["PreconditionFailed", "NoSuchKey", FULL]);

const over = new AbortController();
const upkeep = keepUp(over.signal);
await Promise.all([
  ...["k0", "k1", "k2", "k3"].map((key) => workAlone("plain", key)),
  ...["v0", "v1"].map((key) => workAlone("versioned", key)),
  contest(),
]);
over.abort();
await upkeep;
await store.close();

// Upkeep moves and removes bytes and must not lose any either.
async function keepUp(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    // If the disk is full it fails, and is retried.
    await store.maintenance.compact().catch(() => undefined);
    await store.maintenance.collect().catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// One writer per key: its contents are known at any moment, except for the operation in progress.
async function workAlone(bucket: string, key: string): Promise<void> {
  let etag = await findEtag(bucket, key);
  const timeline: Timeline = { states: [await readState(store, bucket, key)], acknowledged: 0 };
  for (let left = Number(readersText); left > 0; left -= 1) void readAlways(bucket, key, timeline);
  while (left > 0) {
    left -= 1;
    const kind = chooseKind(etag);
    const operation = (nextOperation += 1);
    const before = timeline.states.at(-1)!;
    timeline.states.push(kind === "delete" ? "nothing" : `${operation}`);
    tell({ at: "begin", operation, bucket, key, kind });
    try {
      const result = await run(store, bucket, key, kind, operation, etag);
      etag = result?.etag;
      timeline.acknowledged = timeline.states.length - 1;
      tell({
        at: "end",
        operation,
        ...(result === undefined ? {} : { versionId: result.versionId }),
      });
    } catch (error) {
      const code = describe(error);
      timeline.states.push(before);
      if (REFUSALS.has(code)) timeline.acknowledged = timeline.states.length - 1;
      tell({ at: "end", operation, code });
    }
  }
}

/** The state of a key after each operation, oldest first; later ones than `acknowledged` may or may not be visible. */
interface Timeline {
  states: string[];
  acknowledged: number;
}

// Reports reads of a state from before the last operation that was acknowledged when the read began.
async function readAlways(bucket: string, key: string, timeline: Timeline): Promise<void> {
  while (!over.signal.aborted) {
    const from = timeline.acknowledged;
    const found = await readState(store, bucket, key);
    const allowed = timeline.states.slice(from);
    if (!allowed.includes(found) && !over.signal.aborted) {
      tell({ at: "stale", path: `${bucket}/${key}`, found, allowed });
    }
    await new Promise(setImmediate);
  }
}

function chooseKind(etag: string | undefined): OperationKind {
  const kinds: OperationKind[] = [
    "put",
    "put",
    "put",
    "multipart",
    "delete",
    "put-if-none",
    "put-if-wrong",
  ];
  if (etag !== undefined) kinds.push("put-if-match", "put-if-match");
  return kinds[random(kinds.length)]!;
}

// Three writers try to create the same object.
async function contest(): Promise<void> {
  while (left > 0) {
    const key = `once-${(nextOperation += 1)}`;
    await Promise.all(
      [1, 2, 3].map(async () => {
        const operation = (nextOperation += 1);
        tell({ at: "begin", operation, bucket: "plain", key, kind: "contest" });
        try {
          const result = await run(store, "plain", key, "put-if-none", operation, undefined);
          tell({ at: "end", operation, versionId: result?.versionId ?? "" });
        } catch (error) {
          tell({ at: "end", operation, code: describe(error) });
        }
      }),
    );
    left -= 3;
  }
}

async function run(
  target: Store,
  bucket: string,
  key: string,
  kind: OperationKind,
  operation: number,
  etag: string | undefined,
): Promise<{ etag: string; versionId: string } | undefined> {
  const body = makeBody(operation);
  if (kind === "delete") {
    await target.objects.delete({ bucket, key });
    return undefined;
  }
  if (kind === "multipart") {
    const upload = await target.uploads.create({ bucket, key });
    const half = Math.floor(body.length / 2);
    const parts = [];
    for (const [index, piece] of [body.subarray(0, half), body.subarray(half)].entries()) {
      const address = { bucket, key, uploadId: upload.uploadId, partNumber: index + 1 };
      const part = target.uploads.beginPart({ ...address, contentLength: piece.length });
      await part.write(piece);
      parts.push({ partNumber: index + 1, etag: (await part.commit()).etag });
    }
    return target.uploads.complete({ bucket, key, uploadId: upload.uploadId, parts });
  }
  const conditions = {
    put: {},
    contest: {},
    "put-if-none": { ifNoneMatch: "*" },
    "put-if-match": { ifMatch: etag ?? "" },
    "put-if-wrong": { ifMatch: "0".repeat(32) },
  }[kind];
  const upload = target.objects.beginPut({ bucket, key, contentLength: body.length, conditions });
  await upload.write(body);
  return upload.commit();
}

async function findEtag(bucket: string, key: string): Promise<string | undefined> {
  try {
    return (await store.objects.head({ bucket, key })).object.etag;
  } catch {
    return undefined;
  }
}

function describe(error: unknown): string {
  return error instanceof StoreError ? error.code : String(error);
}
