// One large object: through two guests in a row, and backed up, with memory that does not grow with it.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { waitForJob } from "../job/rig.ts";
import { callJson, readJson } from "../serving/json-api.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { identity, otherIdentity, putModule } from "./guests.ts";

const MIB = 1024 * 1024;
/** `VAULT_GUEST_BYTES=5368709120` is the long form. */
const BYTES = Number(process.env["VAULT_GUEST_BYTES"] ?? 48 * MIB);
const PART_BYTES = 16 * MIB;
const PARTS = BYTES / PART_BYTES;
const GROWTH_MAX = 150 * MIB;
/** Four threads, each with the memory of a piece. */
const BACKUP_GROWTH_MAX = 250 * MIB;
const MEASURE_EVERY_MS = 50;
const TIMEOUT_MS = 60_000 + BYTES / 5_000;

const part = randomBytes(PART_BYTES);
let serving: Serving;
let backups: string;
before(async () => {
  backups = mkdtempSync(join(tmpdir(), "large-backups-"));
  mkdirSync(backups, { recursive: true });
  serving = await serve({ env: { PLATFORM_VAULT_BACKUP_DIR: backups } });
  await putModule(serving, "one", identity);
  await putModule(serving, "two", otherIdentity);
  await serving.s3.must("PUT", "/large");
});
after(async () => {
  await serving[Symbol.asyncDispose]();
  rmSync(backups, { recursive: true });
});

// Each part begins with its number.
function getPart(number: number): Buffer {
  part.writeUInt32BE(number);
  return part;
}

async function upload(key: string): Promise<void> {
  const { s3 } = serving;
  const { text } = await s3.must("POST", `/large/${key}?uploads`);
  const id = /<UploadId>([^<]+)</.exec(text)![1]!;
  let parts = "";
  for (let number = 1; number <= PARTS; number += 1) {
    const body = getPart(number);
    const { headers } = await s3.must(
      "PUT",
      `/large/${key}?partNumber=${number}&uploadId=${encodeURIComponent(id)}`,
      { body },
    );
    parts += `<Part><PartNumber>${number}</PartNumber><ETag>${String(headers["etag"])}</ETag></Part>`;
  }
  await s3.must("POST", `/large/${key}?uploadId=${encodeURIComponent(id)}`, {
    body: `<CompleteMultipartUpload>${parts}</CompleteMultipartUpload>`,
  });
}

function readMemory(): number {
  const status = readFileSync(`/proc/${serving.vault.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)![1]) * 1_024;
}

// Fails if the memory of the service grows too much meanwhile.
async function measure<T>(what: string, growthMax: number, work: () => Promise<T>): Promise<T> {
  const before = readMemory();
  const begun = performance.now();
  let most = before;
  const timer = setInterval(() => (most = Math.max(most, readMemory())), MEASURE_EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    const growth = most - before;
    const seconds = (performance.now() - begun) / 1_000;
    const figures = `${(growth / 1e6).toFixed(0)} MB more, ${(BYTES / 1e6 / seconds).toFixed(0)} MB/s`;
    console.log(`${what}: ${figures}`);
    assert.ok(growth < growthMax, `${what}: ${figures}`);
  }
}

const skip = process.platform !== "linux" && "memory is read from /proc";

test(
  "a large object goes through two guests, and is backed up, in constant memory",
  { skip },
  async () => {
    const { s3 } = serving;
    await upload("in");
    // The first run starts the threads, whose memory stays.
    await s3.must("PUT", "/large/small", { body: "x" });
    await s3.must("POST", "/large/small?transform&module=one,two&target-key=small-out");
    await measure("two guests", GROWTH_MAX, () =>
      s3.must("POST", "/large/in?transform&module=one,two&target-key=out"),
    );
    for (let number = 1; number <= PARTS; number += Math.max(1, Math.floor(PARTS / 16))) {
      const start = (number - 1) * PART_BYTES;
      const range = `bytes=${start}-${start + PART_BYTES - 1}`;
      const { body } = await s3.must("GET", "/large/out", { headers: { range } });
      assert.ok(body.equals(getPart(number)), `part ${number}`);
    }
    const head = await s3.must("HEAD", "/large/out");
    assert.equal(Number(head.headers["content-length"]), BYTES);
    const job = await measure("backup", BACKUP_GROWTH_MAX, async () => {
      const body = { repository: { path: "large" } };
      const { job_id: id } = await readJson<{ job_id: string }>(
        callJson(serving, "POST", "/admin/backup", body),
        202,
      );
      return waitForJob(serving, id, TIMEOUT_MS);
    });
    assert.equal(job.state, "completed", job.reason ?? "");
    assert.ok(job.totals.bytes >= BYTES);
  },
);
