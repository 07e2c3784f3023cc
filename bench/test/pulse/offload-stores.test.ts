// A topic that left the disk for our storage, and for Ceph's object gateway, is read back as it was by a client of Kafka and over SSE.
// A long form: PLATFORM_OFFLOAD_MIB=3072, with the packages of `tools/install-peers bench`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { findFreePort } from "../../../tests/stage/process.ts";
import { findProgram } from "../../../tests/stage/program.ts";
import { OURS_ON_NODE } from "../../harness/build.ts";
import { Workspace } from "../../harness/case.ts";
import { makePlatformPulse } from "../../pulse/brokers/platform-pulse.ts";
import { CREDENTIALS, createPresigner } from "../../vault/presign.ts";
import { makePlatformVaultd } from "../../vault/stores/platform-vaultd.ts";
import { radosgw } from "../../vault/stores/radosgw.ts";
import type { ObjectStore } from "../../vault/stores/store.ts";

const MIB = 2 ** 20;
const mib = Number(process.env["PLATFORM_OFFLOAD_MIB"] ?? 0);
const skip =
  mib === 0 ? "PLATFORM_OFFLOAD_MIB is not set" : findProgram("kcat") ? false : "needs kcat";
const PAYLOAD_BYTES = 2_000;
const BATCH = 4_000;
const count = Math.ceil((mib * MIB) / PAYLOAD_BYTES / BATCH) * BATCH;
const TOPIC = "history";
const BUCKET = "cold";
const CORES = "0-1";

/** The payload of a message: no two are alike. */
function payloadOf(at: number): string {
  return `${at} ${(at * 2_654_435_761).toString(36)} `.repeat(200).slice(0, PAYLOAD_BYTES);
}

async function send(url: string, method: string, body: object): Promise<void> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(url, { method, headers, body: JSON.stringify(body) });
  assert.ok(answer.ok, await answer.text());
  await answer.arrayBuffer().catch(() => undefined);
}

async function publish(url: string): Promise<string> {
  const hash = createHash("sha256");
  for (let at = 0; at < count; at += BATCH) {
    const payloads = Array.from({ length: BATCH }, (_, index) => payloadOf(at + index));
    for (const payload of payloads) hash.update(payload);
    const messages = payloads.map((payload) => ({ topic: TOPIC, payload }));
    await send(`${url}/api/v1/publish/batch`, "POST", { messages });
  }
  return hash.digest("hex");
}

async function readByKafka(port: number): Promise<string> {
  const kcat = spawn(
    findProgram("kcat")!,
    `-C -q -e -b 127.0.0.1:${port} -t ${TOPIC} -o beginning -f %s`.split(" "),
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const hash = createHash("sha256");
  for await (const piece of kcat.stdout) hash.update(piece as Buffer);
  return hash.digest("hex");
}

async function readByEvents(url: string): Promise<string> {
  const answer = await fetch(`${url}/api/v1/subscribe/${TOPIC}?from=earliest`);
  const hash = createHash("sha256");
  let left = count;
  const body = Readable.fromWeb(answer.body!);
  for await (const line of createInterface({ input: body })) {
    if (!line.startsWith("data:")) continue;
    hash.update((JSON.parse(line.slice("data:".length)) as { payload: string }).payload);
    left -= 1;
    if (left === 0) break;
  }
  body.destroy();
  assert.equal(left, 0);
  return hash.digest("hex");
}

/** Bytes of segments on the disk. */
function countLocal(folder: string): number {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return names.filter((name) => /topics.*\.log$/.test(name)).length;
}

for (const store of [makePlatformVaultd(OURS_ON_NODE), radosgw]) {
  test(
    `${mib} MiB in ${store.name}: read whole by kcat and over SSE`,
    { skip: skip || (store.explainAbsence() ?? false) },
    async (t) => {
      await using workspace = new Workspace();
      const origin = await startStore(store, workspace);
      const folder = join(workspace.folder, "broker");
      mkdirSync(folder);
      const { ports } = await makePlatformPulse(OURS_ON_NODE).start({
        cores: CORES,
        folder,
        workspace,
        env: {
          PLATFORM_PULSE_S3_ENDPOINT: origin,
          PLATFORM_PULSE_S3_BUCKET: BUCKET,
          PLATFORM_PULSE_S3_TOKEN: `${CREDENTIALS.accessKey}:${CREDENTIALS.secretKey}`,
          PLATFORM_PULSE_OFFLOAD_CACHE_BYTES: String(64 * MIB),
        },
      });
      const url = `http://127.0.0.1:${ports.http}`;
      const config = { offload: true, local_retention_bytes: 0, segment_bytes: 64 * MIB };
      await send(`${url}/api/v1/topics`, "POST", { name: TOPIC, partitions: 1, config });
      const begunMs = performance.now();
      const expected = await publish(url);
      t.diagnostic(`published after ${Math.round(performance.now() - begunMs)} ms`);
      const status = await awaitUploads(url);
      t.diagnostic(`${status.remote_segments} segments, ${status.remote_bytes} bytes there`);
      while (countLocal(folder) > 2) await sleep(200);
      assert.equal(await readByKafka(ports.kafka!), expected, "kcat");
      t.diagnostic(`read by kcat after ${Math.round(performance.now() - begunMs)} ms`);
      assert.equal(await readByEvents(url), expected, "SSE");
      t.diagnostic(`read over SSE after ${Math.round(performance.now() - begunMs)} ms`);
    },
  );
}

async function startStore(store: ObjectStore, workspace: Workspace): Promise<string> {
  const folder = join(workspace.folder, "store");
  mkdirSync(folder);
  const port = await findFreePort();
  await store.start({ port, cores: CORES, folder, workspace });
  const origin = `http://127.0.0.1:${port}`;
  const sign = createPresigner(new URL(origin).host, CREDENTIALS);
  const made = await fetch(origin + sign("PUT", `/${BUCKET}`), { method: "PUT" });
  assert.ok(made.ok, await made.text());
  return origin;
}

async function awaitUploads(url: string) {
  for (;;) {
    const answer = await fetch(`${url}/api/v1/admin/offloader`);
    const status = (await answer.json()) as {
      remote_segments: number;
      remote_bytes: number;
      pending_segments: number;
    };
    // All but the growing segment.
    if (status.pending_segments === 0 && status.remote_segments > 0) return status;
    await sleep(500);
  }
}
