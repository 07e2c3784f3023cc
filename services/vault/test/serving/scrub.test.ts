// Scrubbing over the admin API, and answers for unreadable bodies, on a running service with three drives.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { makeBytes } from "../store/fixture.ts";
import { serve, type Serving } from "./serving.ts";

interface ScrubAnswer {
  state: string;
  progress: { files_done: number; files_total: number } | null;
  last: { files: number; healed: number; damaged: number; missing: number } | null;
}

function listBodies(folder: string): string[] {
  return readdirSync(join(folder, "files"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

function flip(path: string): void {
  const bytes = readFileSync(path);
  bytes[2_000]! ^= 1;
  writeFileSync(path, bytes);
}

async function scrub({ admin }: Serving): Promise<NonNullable<ScrubAnswer["last"]>> {
  const started = await admin.send("POST", "/api/v1/scrub");
  assert.equal(started.status, 202, started.text);
  const { state, progress } = JSON.parse(started.text) as ScrubAnswer;
  assert.equal(state, "running");
  assert.ok(progress !== null && progress.files_done <= progress.files_total, started.text);
  return waitFor(async () => {
    const answer = JSON.parse((await admin.send("GET", "/api/v1/scrub")).text) as ScrubAnswer;
    return answer.state === "idle" ? (answer.last ?? undefined) : undefined;
  }, "the end of the scrub");
}

async function readMetric({ admin }: Serving, name: string): Promise<number> {
  const { text } = await admin.send("GET", "/metrics");
  return Number(new RegExp(`^platform_vault_${name} (\\S+)$`, "m").exec(text)?.[1]);
}

test("a scrub is started and followed over the admin API; healed bodies are not damage, others are refused before the head", async () => {
  const root = mkdtempSync(join(tmpdir(), "vault-scrub-"));
  const drives = ["a", "b", "c"].map((name) => join(root, name));
  for (const drive of drives) mkdirSync(drive);
  try {
    await using serving = await serve({ env: { PLATFORM_VAULT_DRIVES: JSON.stringify(drives) } });
    const { s3 } = serving;
    await s3.send("PUT", "/bucket");
    const body = makeBytes(3_000_000);
    assert.equal((await s3.send("PUT", "/bucket/healed", { body })).status, 200);
    assert.equal(await readMetric(serving, "scrub_last_complete_timestamp_seconds"), 0);

    flip(listBodies(drives[0]!)[0]!);
    const healed = await scrub(serving);
    assert.deepEqual([healed.healed, healed.damaged, healed.missing], [1, 0, 0]);
    assert.equal((await scrub(serving)).healed, 0);
    assert.equal(await readMetric(serving, "scrub_last_complete_damaged"), 0);
    const endedSeconds = await readMetric(serving, "scrub_last_complete_timestamp_seconds");
    assert.ok(Math.abs(endedSeconds - Date.now() / 1000) < 600, `${endedSeconds}`);

    const before = new Set(listBodies(drives[1]!));
    assert.equal((await s3.send("PUT", "/bucket/lost", { body })).status, 200);
    const [lost] = listBodies(drives[1]!).filter((path) => !before.has(path));
    const name = lost!.slice(drives[1]!.length);
    rmSync(join(drives[1]!, name));
    flip(join(drives[2]!, name));
    const answer = await s3.send("GET", "/bucket/lost");
    assert.equal(answer.status, 500);
    assert.match(answer.text, /<Code>InternalError<\/Code>/);
    assert.equal((await s3.send("GET", "/bucket/healed")).status, 200);
    const found = await scrub(serving);
    assert.ok(found.damaged + found.missing > 0);
    assert.ok((await readMetric(serving, "scrub_last_complete_damaged")) > 0);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

test("a body that was damaged or truncated on a single drive is refused before the head", async () => {
  await using serving = await serve();
  const { s3, vault } = serving;
  await s3.send("PUT", "/bucket");
  assert.equal(
    (await s3.send("PUT", "/bucket/flipped", { body: makeBytes(3_000_000) })).status,
    200,
  );
  const [flipped] = listBodies(vault.dataDir);
  flip(flipped!);
  assert.equal((await s3.send("GET", "/bucket/flipped")).status, 500);
  assert.equal((await s3.send("PUT", "/bucket/cut", { body: makeBytes(3_000_001) })).status, 200);
  const cut = listBodies(vault.dataDir).find((path) => path !== flipped);
  writeFileSync(cut!, readFileSync(cut!).subarray(0, 2_500_000));
  assert.equal((await s3.send("GET", "/bucket/cut")).status, 500);
});
