// Bodies of all forms in parallel over HTTP: bodies that share the memory are not mixed up.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { crc32 } from "@node-rs/crc32";
import type { Ask } from "./s3-client.ts";
import { serve } from "./serving.ts";

const MIB = 1024 * 1024;
const SIZES = [10_000, 300_000, 3 * MIB + 12_345];
const ROUNDS = 3;
const CODED_CHUNK_BYTES = 100_000;

/** Ways to send a body, by name. */
const FORMS: Record<string, (body: Buffer) => Ask> = {
  signed: (body) => ({ body }),
  unsigned: (body) => ({ body, payloadHash: "UNSIGNED-PAYLOAD" }),
  encrypted: (body) => ({ body, headers: { "x-amz-server-side-encryption": "AES256" } }),
  coded: (body) => ({
    body: encodeChunks(body),
    payloadHash: "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    headers: {
      "content-encoding": "aws-chunked",
      "x-amz-decoded-content-length": String(body.length),
      "x-amz-trailer": "x-amz-checksum-crc32",
    },
  }),
};

function encodeChunks(body: Buffer): Buffer {
  const pieces: Buffer[] = [];
  for (let at = 0; at < body.length; at += CODED_CHUNK_BYTES) {
    const data = body.subarray(at, at + CODED_CHUNK_BYTES);
    pieces.push(Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from("\r\n"));
  }
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(body));
  const trailer = `x-amz-checksum-crc32:${sum.toString("base64")}`;
  return Buffer.concat([...pieces, Buffer.from(`0\r\n${trailer}\r\n\r\n`)]);
}

for (const drives of [1, 3]) {
  test(`bodies of all forms and sizes in parallel are read back unchanged, on ${drives} drives`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "vault-bodies-"));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const folders = Array.from({ length: drives }, (_, slot) => join(folder, `drive-${slot}`));
    for (const drive of folders) mkdirSync(drive);
    const env = drives === 1 ? {} : { PLATFORM_VAULT_DRIVES: folders.join(",") };
    await using serving = await serve({ folder, env });
    const { s3 } = serving;
    await s3.must("PUT", "/bodies");
    if (drives > 1) for (const drive of folders) assert.ok(existsSync(join(drive, "drive.json")));
    await Promise.all(
      Object.entries(FORMS).flatMap(([form, ask]) =>
        SIZES.map(async (size) => {
          for (let round = 0; round < ROUNDS; round += 1) {
            const key = `/bodies/${form}-${size}-${round}`;
            const body = randomBytes(size);
            await s3.must("PUT", key, ask(body));
            assert.ok((await s3.must("GET", key)).body.equals(body), key);
          }
        }),
      ),
    );
  });
}
