// Many clients that request a large object and do not read it, and one that does.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { signRequest } from "@platform/s3/signature";
import { serve, type Serving } from "./serving.ts";
import { vaultRoot } from "@platform/testing/staged-vault";

const MIB = 1024 * 1024;
/** More than the system buffers for a client that does not read: some of it must wait in the service. */
const OBJECT_BYTES = 12 * MIB;
/** Of each kind of object. */
const READERS = 100;
const BUDGET_BYTES = 16 * MIB;
/** Uncharged bytes: headers, and the documents of other answers. */
const UNCLAIMED_BYTES = MIB;
/**
 * Of the process: the budget, spare frames, and garbage that is not collected yet. Two frames for each encrypted reader
 * would be 200 MiB.
 */
const GROWTH_BYTES_MAX = 12 * BUDGET_BYTES;

const KINDS = {
  plain: {},
  encrypted: { "x-amz-server-side-encryption": "AES256" },
};

async function readMetric(serving: Serving, name: string): Promise<number> {
  const { text } = await serving.admin.must("GET", "/metrics");
  const line = text.split("\n").find((one) => one.startsWith(name) && !one.startsWith("#"));
  return Number(line?.split(" ").at(-1) ?? 0);
}

/** Requests an object and reads nothing of the answer. */
function openSlowReader({ vault }: Serving, target: string): Socket {
  const headers = { host: `127.0.0.1:${vault.port}` };
  const signed = signRequest(
    { accessKey: vaultRoot.accessKey, secret: vaultRoot.secretKey, region: "us-east-1" },
    { method: "GET", target, headers, payloadHash: "UNSIGNED-PAYLOAD", timeMs: Date.now() },
  ).headers;
  const fields = Object.entries(signed).map(([name, value]) => `${name}: ${value}\r\n`);
  const socket = connect(vault.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.pause();
  socket.write(`GET ${target} HTTP/1.1\r\n${fields.join("")}\r\n`);
  return socket;
}

function readMemory(pid: number, field: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) * 1024;
}

for (const drives of [1, 3]) {
  test(`slow readers of objects on ${drives} drives stay within their budget, and a fast one gets everything`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "vault-slow-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const folders = Array.from({ length: drives }, (_, slot) => join(folder, `drive-${slot}`));
    for (const drive of folders) mkdirSync(drive);
    await using serving = await serve({
      folder,
      env: {
        PLATFORM_VAULT_MAX_UNSENT_SIZE: String(BUDGET_BYTES),
        ...(drives === 1 ? {} : { PLATFORM_VAULT_DRIVES: folders.join(",") }),
      },
    });
    const { s3, vault } = serving;
    await s3.must("PUT", "/slow");
    const body = randomBytes(OBJECT_BYTES);
    for (const [kind, headers] of Object.entries(KINDS)) {
      await s3.must("PUT", `/slow/${kind}`, { body, headers });
      assert.ok((await s3.must("GET", `/slow/${kind}`)).body.equals(body));
    }
    const before = readMemory(vault.pid, "VmRSS");
    const readers: Socket[] = [];
    t.after(() => readers.forEach((socket) => socket.destroy()));
    for (let count = 0; count < READERS; count += 1) {
      for (const kind of Object.keys(KINDS)) readers.push(openSlowReader(serving, `/slow/${kind}`));
    }
    let peak = 0;
    const readUnsent = async (): Promise<number> => {
      const bytes = await readMetric(serving, "platform_vault_unsent_bytes");
      peak = Math.max(peak, bytes);
      return bytes;
    };
    await waitFor(async () => {
      await readUnsent();
      const open = await readMetric(serving, "platform_vault_connections ");
      const dropped = 'platform_vault_slow_readers_total{reason="over_budget"}';
      return open + (await readMetric(serving, dropped)) > readers.length;
    }, "the readers' connections");
    for (const kind of Object.keys(KINDS)) {
      const fast = s3.must("GET", `/slow/${kind}`);
      await readUnsent();
      assert.ok((await fast).body.equals(body));
    }
    await readUnsent();
    assert.ok(peak <= BUDGET_BYTES + UNCLAIMED_BYTES, `${(peak / MIB).toFixed(0)} MiB were in use`);
    const grown = readMemory(vault.pid, "VmHWM") - before;
    assert.ok(grown < GROWTH_BYTES_MAX, `grown by ${(grown / MIB).toFixed(0)} MiB`);
    for (const socket of readers) socket.destroy();
    await waitFor(async () => (await readUnsent()) === 0, "the readers' memory");
  });
}

test("a client that reads below the minimum rate is disconnected and counted, one at the rate gets everything", async () => {
  await using serving = await serve({
    env: {
      PLATFORM_VAULT_ANSWER_PACE_BYTES: "3000000",
      PLATFORM_VAULT_ANSWER_PACE_WINDOW_MS: "3000",
    },
  });
  const { s3 } = serving;
  await s3.must("PUT", "/slow");
  await s3.must("PUT", "/slow/large", { body: Buffer.alloc(OBJECT_BYTES) });
  const open = await readMetric(serving, "platform_vault_connections ");
  const reader = openSlowReader(serving, "/slow/large");
  await waitFor(async () => {
    return (await readMetric(serving, 'platform_vault_slow_readers_total{reason="slow"}')) === 1;
  }, "the slow reader's end");
  assert.equal(await readMetric(serving, "platform_vault_connections "), open);
  reader.destroy();
  assert.equal((await s3.must("GET", "/slow/large")).body.length, OBJECT_BYTES);
});

test("connections beyond the limits are closed immediately and counted", async () => {
  await using serving = await serve({
    env: {
      PLATFORM_VAULT_MAX_CONNECTIONS: "20",
      PLATFORM_VAULT_MAX_CONNECTIONS_PER_ADDRESS: "18",
    },
  });
  const clients = Array.from({ length: 30 }, () => {
    return connect(serving.vault.port, "127.0.0.1").on("error", () => undefined);
  });
  await waitFor(async () => {
    const refused = await readMetric(
      serving,
      'platform_vault_connections_refused_total{bound="address"}',
    );
    return refused === 12;
  }, "refused connections");
  assert.equal(await readMetric(serving, "platform_vault_connections "), 18);
  for (const client of clients) client.destroy();
  await waitFor(async () => {
    return (await readMetric(serving, "platform_vault_connections ")) === 0;
  }, "room");
  assert.equal((await serving.s3.send("GET", "/")).status, 200);
});
