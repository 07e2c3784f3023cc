// A broker on a small file system of its own that becomes full: refused in time, freed from inside, named at the start.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { statfsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fillDisk, mountSmallDisk } from "@platform/testing/disks";
import { PulseProcess } from "../fixture/pulse-process.ts";

const SIZE_MIB = 160;
const PAYLOAD_BYTES = 700_000;
const MESSAGES_MAX = 400;
const DEADLINE_MS = 30_000;

async function fill(pulse: PulseProcess, topic: string): Promise<string[]> {
  const acknowledged: string[] = [];
  for (let sent = 0; sent < MESSAGES_MAX; sent++) {
    const id = `${topic}-${sent}`;
    const payload = randomBytes(PAYLOAD_BYTES / 2).toString("hex");
    const { status, body } = await pulse.publish({ topic, payload, message_id: id });
    if (status === 507) {
      // A checkpoint may have freed some space since.
      if ((await pulse.get("/readyz")).status === 503) return acknowledged;
      continue;
    }
    assert.equal(status, 200, JSON.stringify(body));
    acknowledged.push(id);
  }
  throw new Error("the disk was never full");
}

async function waitForReady(pulse: PulseProcess): Promise<void> {
  const deadline = Date.now() + DEADLINE_MS;
  while ((await pulse.get("/readyz")).status !== 200) {
    assert.ok(Date.now() < deadline, "the disk stays full");
    await sleep(100);
  }
}

async function assertFull(pulse: PulseProcess): Promise<void> {
  const ready = await pulse.get("/readyz");
  assert.equal(ready.status, 503);
  assert.match(ready.body.checks.log.detail, /^disk_full/);
  assert.match((await pulse.get("/metrics")).body, /^platform_pulse_disk_full 1$/m);
}

test("a full disk is reported, keeps acknowledged messages, and is freed by deletion and retention", async (t) => {
  const folder = mountSmallDisk(t, { mib: SIZE_MIB });
  if (folder === undefined) {
    t.skip("needs the right to mount a file system");
    return;
  }
  const pulse = new PulseProcess(folder, {});
  t.after(() => pulse.kill());
  await pulse.start();

  const first = await fill(pulse, "first");
  await assertFull(pulse);
  assert.ok(statfsSync(folder).bavail > 0, "the reserve is left");
  const { body } = await pulse.get(`/api/v1/tail?topic=first&n=5`);
  const ids = (body.messages as { message_id: string }[]).map(({ message_id }) => message_id);
  assert.deepEqual(ids, first.slice(-5));

  await pulse.kill();
  await pulse.start();
  await assertFull(pulse);

  assert.equal((await pulse.get("/api/v1/topics/first", { method: "DELETE" })).status, 204);
  await waitForReady(pulse);
  const config = { segment_bytes: 1_000_000 };
  assert.equal((await pulse.post("/api/v1/topics", { name: "second", config })).status, 201);
  const second = await fill(pulse, "second");
  assert.ok(second.length > first.length / 2, `${second.length} messages after the deletion`);

  const retention = { topic: "second", retention_bytes: 1_000_000 };
  assert.equal((await pulse.post("/api/v1/topics/retention", retention)).status, 200);
  await waitForReady(pulse);
  assert.equal((await pulse.publish({ topic: "third", payload: "room" })).status, 200);
});

test("a start on a completely full disk reports the disk, not another process", async (t) => {
  const folder = mountSmallDisk(t, { mib: SIZE_MIB });
  if (folder === undefined) {
    t.skip("needs the right to mount a file system");
    return;
  }
  fillDisk(join(folder, "ballast"));
  const pulse = new PulseProcess(folder, {});
  t.after(() => pulse.kill());
  await assert.rejects(pulse.start(), (error: Error) => {
    assert.match(error.message, /no space left/i);
    assert.doesNotMatch(error.message, /another process/);
    return true;
  });
});
