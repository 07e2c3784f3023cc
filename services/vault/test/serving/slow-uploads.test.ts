// Clients that send slowly, or stop, do not delay others: small writes, other tenants, their own other requests.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { signRequest } from "@platform/s3/signature";
import type { Key } from "./s3-client.ts";
import { serve, type Serving } from "./serving.ts";
import { vaultRoot } from "@platform/testing/staged-vault";

const MIB = 1024 * 1024;
const SLOW_BYTES = 12 * MIB;
/** Far above the usual time on a busy machine, far below the limit of slow clients. */
const PROMPT_MS = 20_000;
const other: Key = { accessKey: "other-tenant", secretKey: "other-tenant-secret" };

async function addUser({ admin }: Serving): Promise<void> {
  const statement = { Effect: "Allow", Action: "s3:*", Resource: "*" };
  const policies = { all: { Version: "2012-10-17", Statement: [statement] } };
  const headers = { "content-type": "application/json" };
  await admin.must("PUT", "/api/v1/users/other", { body: JSON.stringify({ policies }), headers });
  const { accessKey: access_key, secretKey: secret_key } = other;
  const body = JSON.stringify({ user: "other", access_key, secret_key });
  await admin.must("POST", "/api/v1/keys", { body, headers });
}

interface Slow {
  socket: Socket;
  /** Bytes that have not been sent. */
  left: number;
  stop: () => void;
}

/** Starts a body, and after `sent` bytes of it sends one every five seconds. */
async function stall(port: number, target: string, size: number, sent: number): Promise<Slow> {
  const { headers } = signRequest(
    { accessKey: vaultRoot.accessKey, secret: vaultRoot.secretKey, region: "us-east-1" },
    {
      method: "PUT",
      target,
      headers: { host: `127.0.0.1:${port}` },
      payloadHash: "UNSIGNED-PAYLOAD",
      timeMs: Date.now(),
    },
  );
  const lines = Object.entries({ ...headers, "content-length": String(size) });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(`PUT ${target} HTTP/1.1\r\n${head}\r\n`);
  socket.write(Buffer.alloc(sent, 0x61));
  const slow = { socket, left: size - sent, stop: () => clearInterval(timer) };
  const timer = setInterval(() => {
    slow.left -= 1;
    socket.write("a");
  }, 5_000);
  socket.once("close", slow.stop);
  return slow;
}

async function readStagingBytes({ admin }: Serving): Promise<number> {
  const { text } = await admin.must("GET", "/metrics", { key: null });
  return Number(/^platform_vault_staging_bytes (\d+)/m.exec(text)![1]);
}

async function putPromptly(serving: Serving, key: Key, size: number): Promise<void> {
  const body = randomBytes(size);
  const target = `/slow/${key.accessKey}-${size}`;
  const start = performance.now();
  const timer = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`${target} waits behind slow uploads`)), PROMPT_MS).unref();
  });
  await Promise.race([serving.s3.must("PUT", target, { key, body }), timer]);
  assert.ok(performance.now() - start < PROMPT_MS);
  assert.ok((await serving.s3.must("GET", target, { key })).body.equals(body));
}

for (const [drives, cases] of [
  [
    12,
    [
      { clients: 12, size: SLOW_BYTES, sent: 1 },
      { clients: 12, size: SLOW_BYTES, sent: 300_000 },
    ],
  ],
  [
    1,
    [
      { clients: 140, size: SLOW_BYTES, sent: 1 },
      { clients: 150, size: MIB, sent: MIB - 1_000 },
    ],
  ],
] as const) {
  describe(`a store on ${drives} drives`, () => {
    const folder = mkdtempSync(join(tmpdir(), "vault-slow-"));
    const folders = Array.from({ length: drives }, (_, slot) => join(folder, `drive-${slot}`));
    let serving: Serving;
    before(async () => {
      for (const drive of folders) mkdirSync(drive);
      const several = drives === 1 ? {} : { PLATFORM_VAULT_DRIVES: folders.join(",") };
      serving = await serve({ folder, env: { ...several, PLATFORM_VAULT_BODY_PACE_BYTES: "0" } });
      await addUser(serving);
      await serving.s3.must("PUT", "/slow");
    });
    after(async () => {
      await serving[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    });

    for (const { clients, size, sent } of cases) {
      test(`${clients} clients that stop after ${sent} of ${size} bytes delay no other client, on ${drives} drives`, async () => {
        const slow = await Promise.all(
          Array.from({ length: clients }, (_, index) =>
            stall(serving.vault.port, `/slow/stalled-${index}`, size, sent),
          ),
        );
        try {
          await waitFor(
            async () => (await readStagingBytes(serving)) >= clients,
            "the slow bodies",
          );
          await Promise.all([
            putPromptly(serving, vaultRoot, 1_000),
            putPromptly(serving, other, 1_000),
            putPromptly(serving, other, 300_000),
            putPromptly(serving, other, 12 * MIB),
          ]);
          await putPromptly(serving, vaultRoot, 12 * MIB);
          // The delayed ones are completed as well.
          const first = slow[0]!;
          first.stop();
          const answered = once(first.socket, "data");
          first.socket.write(Buffer.alloc(first.left, 0x62));
          assert.match(String((await answered)[0]), /^HTTP\/1\.1 200 /);
          const stored = (await serving.s3.must("GET", "/slow/stalled-0")).body;
          assert.equal(stored.length, size);
          assert.equal(stored.indexOf(0x62), size - first.left);
          assert.equal(stored.lastIndexOf(0x61), size - first.left - 1);
        } finally {
          for (const { socket } of slow) socket.destroy();
        }
        await waitFor(async () => {
          return (await readStagingBytes(serving)) === 0;
        }, "memory of clients that are gone");
      });
    }
  });
}

test("a client below the minimum pace is disconnected and counted", async () => {
  const env = {
    PLATFORM_VAULT_BODY_PACE_BYTES: "1000",
    PLATFORM_VAULT_BODY_PACE_WINDOW_MS: "1000",
  };
  await using serving = await serve({ env });
  await serving.s3.must("PUT", "/slow");
  const { socket } = await stall(serving.vault.port, "/slow/cut", SLOW_BYTES, 10);
  const [answer] = await once(socket, "data");
  assert.match(String(answer), /^HTTP\/1\.1 400 [^]*<Code>RequestTimeout<\/Code>/);
  const { text } = await serving.admin.must("GET", "/metrics", { key: null });
  assert.match(text, /^platform_vault_slow_uploads_total 1$/m);
  assert.match(text, /^platform_vault_waiting_writers\{for="memory"\} 0$/m);
  socket.destroy();
});
