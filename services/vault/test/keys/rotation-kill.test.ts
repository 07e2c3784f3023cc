// Rotations of a service that is killed while clients write: every acknowledged object is read afterwards, and former versions
// of keys go when nothing names them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { waitFor } from "@platform/testing/wait";
import { callJson, readJson } from "../serving/json-api.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { makeBytes } from "../store/fixture.ts";

/** Kills of the service for each kind of rotation; 0 is one during all of them. */
const KILLS = Number(process.env["VAULT_KEY_KILLS"] ?? 0);
const SIZES = [100, 4_000, 60_000, 1_500_000];
const WRITERS = 4;
const SSE = "x-amz-server-side-encryption";
const NAMED: Record<string, string> = {
  [SSE]: "aws:kms",
  [`${SSE}-aws-kms-key-id`]: "alias/one",
};

interface Version {
  id: string;
  objects: number;
  heads: number;
}
interface Keys {
  items: { name: string; versions: Version[] }[];
  sse_s3: { versions: Version[] };
  master: { id: string };
}

let serving: Serving;
/** The size of each acknowledged object. */
const stored = new Map<string, number>();
let count = 0;

before(async () => {
  serving = await serve();
  await serving.s3.must("PUT", "/rotated");
  await readJson(callJson(serving, "POST", "/admin/encryption-keys", { name: "one" }), 201);
  // Both keys have heads on disk, however little is written before a kill.
  for (const encryption of [NAMED, { [SSE]: "AES256" }]) {
    const key = `first-${encryption[SSE]!.replace(":", "-")}`;
    await serving.s3.must("PUT", `/rotated/${key}`, { body: toBody(60_000), headers: encryption });
    stored.set(key, 60_000);
  }
});
after(() => serving[Symbol.asyncDispose]());

const readKeys = () => readJson<Keys>(callJson(serving, "GET", "/admin/encryption-keys"));

function toBody(size: number): Buffer {
  return makeBytes(size, size);
}

// Small ones mostly, so that there are many rows. An answer may be lost with the process.
async function write(signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    count += 1;
    const key = `k${count}`;
    const size = SIZES[count % 31 === 0 ? 3 : count % 7 === 0 ? 2 : count % 2]!;
    const headers = count % 3 > 0 ? NAMED : { [SSE]: "AES256" };
    const answer = await serving.s3
      .send("PUT", `/rotated/${key}`, { body: toBody(size), headers })
      .catch(() => undefined);
    if (answer?.status === 200) stored.set(key, size);
    else await wait(20);
  }
}

async function writeWhile(work: () => Promise<void>): Promise<void> {
  const stop = new AbortController();
  const writers = Array.from({ length: WRITERS }, () => write(stop.signal));
  try {
    await work();
  } finally {
    stop.abort();
    await Promise.all(writers);
  }
}

async function assertReadable(): Promise<void> {
  for (const [key, size] of stored) {
    const answer = await serving.s3.send("GET", `/rotated/${key}`);
    assert.equal(answer.status, 200, `${key}: ${answer.text.slice(0, 300)}`);
    assert.ok(answer.body.equals(toBody(size)), key);
  }
}

async function start(kind: string): Promise<void> {
  await callJson(serving, "POST", kind).catch(() => undefined);
}

const ROTATIONS = {
  "a named key": "/admin/encryption-keys/one/rotate",
  "the key of SSE-S3": "/admin/encryption-keys/sse-s3/rotate",
  "the master key": "/admin/encryption-keys/master/rotate",
  "heads of records": "/api/v1/jobs/rewrite_heads/start",
};

const KINDS: readonly (readonly [name: string, paths: readonly string[]])[] =
  KILLS === 0
    ? [["all of it at once", Object.values(ROTATIONS)]]
    : Object.entries(ROTATIONS).map(([name, path]) => [name, [path]]);

for (const [name, paths] of KINDS) {
  test(`after kills during the rotation of ${name}, all objects are read`, async () => {
    for (let kill = 0; kill < Math.max(1, KILLS); kill += 1) {
      await writeWhile(async () => {
        await wait(150);
        for (const path of paths) void start(path);
        await wait((kill * 37) % 160);
        await serving.vault.kill();
        await serving.vault.start();
      });
    }
    await assertReadable();
  });
}

test("then one version of each key is left when the heads are written again, and not before", async () => {
  const run = async (kind: string): Promise<void> => {
    await readJson(callJson(serving, "POST", `/api/v1/jobs/${kind}/start`), 202);
    await waitFor(async () => {
      const { items } = await readJson<{ items: { kind: string; state: string }[] }>(
        callJson(serving, "GET", "/api/v1/jobs"),
      );
      return items.find((job) => job.kind === kind)?.state === "idle";
    }, `the end of ${kind}`);
  };
  await start(ROTATIONS["a named key"]);
  await start(ROTATIONS["the key of SSE-S3"]);
  await run("rewrap");
  await run("rewrap");
  const before = await readKeys();
  for (const { versions } of [before.sse_s3, before.items[0]!]) {
    const [, ...former] = versions;
    assert.ok(former.length > 0);
    for (const { objects, heads } of former) assert.ok(objects === 0 && heads > 0);
  }
  await run("rewrite_heads");
  await run("rewrap");
  const now = await readKeys();
  assert.equal(now.sse_s3.versions.length, 1);
  assert.equal(now.items[0]!.versions.length, 1);
  await assertReadable();
  if (KILLS === 0) return;
  await serving.vault.stop();
  await serving.vault.start();
  await assertReadable();
});
