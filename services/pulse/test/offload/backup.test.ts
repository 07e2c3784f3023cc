// Backups, checks and repairs of a log with segments in object storage, as an operator runs them.
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { buildSchema } from "@platform/kernel/config";
import { waitFor } from "@platform/testing/wait";
import { pulseDefinition } from "../../src/config.ts";
import { backupFolder, restoreFolder } from "../../src/store/backup.ts";
import { checkFolder, repairFolder } from "../../src/store/maintenance.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { OffloadStore } from "./store.ts";

const PAYLOAD_BYTES = 140_000;
const COUNT = 9;

let store: OffloadStore;
before(async () => {
  store = await OffloadStore.start();
});
after(() => store.end());

const places = (prefix: string) => ({
  s3_endpoint: store.vault.url,
  s3_bucket: store.bucket,
  s3_token: store.token,
  s3_prefix: prefix,
});

const configOf = ({ folder }: PulseHere, prefix: string) =>
  buildSchema(pulseDefinition.keys).parse({ data_dir: folder, ...places(prefix) });

const ignore = () => undefined;

/** A stopped broker with remote segments, and its messages. */
async function stopOffloaded(t: { after(done: () => unknown): void }, prefix: string) {
  const pulse = await startPulseHere(
    t,
    Object.fromEntries(
      Object.entries(places(prefix)).map(([name, value]) => [
        `PLATFORM_PULSE_${name.toUpperCase()}`,
        value,
      ]),
    ),
  );
  const config = { offload: true, local_retention_bytes: 0, segment_bytes: 2 * PAYLOAD_BYTES };
  await pulse.post("/api/v1/topics", { name: "kept", config });
  const payloads = Array.from({ length: COUNT }, (_, at) => `${at} `.padEnd(PAYLOAD_BYTES, "p"));
  for (const payload of payloads) await pulse.publish({ topic: "kept", payload });
  await waitFor(async () => {
    const { body } = await pulse.get("/api/v1/admin/offloader");
    return body.remote_segments >= 4 && body.pending_segments === 0;
  });
  await pulse.stop();
  return { pulse, payloads, config: configOf(pulse, prefix) };
}

async function readTail(pulse: PulseHere): Promise<string[]> {
  const { status, body } = await pulse.get(`/api/v1/tail?topic=kept&n=${COUNT}`);
  assert.equal(status, 200, JSON.stringify(body).slice(0, 300));
  return body.messages.map(({ payload }: { payload: string }) => payload);
}

test("a backup names remote segments; a restored log reads them and never removes them", async (t) => {
  const { pulse, payloads, config } = await stopOffloaded(t, "named/");
  const folder = join(pulse.folder, "backup");
  const lines: string[] = [];
  await backupFolder(config, { folder }, (line) => void lines.push(line));
  assert.match(lines.join("\n"), /In object storage and not copied: 4 segments/);
  assert.equal(globSync("**/log.id", { cwd: folder }).length, 0);
  rmSync(join(pulse.folder, "queue.wal"), { recursive: true });
  await restoreFolder(config, { folder, dry_run: false }, ignore);
  await pulse.start();
  assert.deepEqual(await readTail(pulse), payloads);
  const before = await store.list();
  await pulse.get("/api/v1/topics/kept", { method: "DELETE" });
  await waitFor(async () => {
    const { body } = await pulse.get("/api/v1/admin/offloader");
    return body.remote_segments === 0;
  });
  await pulse.stop();
  assert.deepEqual(await store.list(), before);
});

test("a backup with its remote segments needs no store any more", async (t) => {
  const { pulse, payloads, config } = await stopOffloaded(t, "whole/");
  const folder = join(pulse.folder, "backup");
  await backupFolder(config, { folder, include_offloaded: true }, ignore);
  const manifest = readFileSync(
    globSync("*.json", { cwd: folder }).map((name) => join(folder, name))[0]!,
    "utf8",
  );
  assert.ok(
    manifest.includes('"segments":0') || manifest.includes('"segments": 0'),
    manifest.slice(0, 400),
  );
  rmSync(join(pulse.folder, "queue.wal"), { recursive: true });
  await restoreFolder(config, { folder, dry_run: false }, ignore);
  const client = store.connect();
  for (const name of (await store.list()).keys()) {
    if (name.startsWith("whole/")) await client.delete(name);
  }
  client.close();
  await pulse.start();
  assert.deepEqual(await readTail(pulse), payloads);
  await waitFor(async () => {
    const { body } = await pulse.get("/api/v1/admin/offloader");
    return body.remote_segments >= 4 && body.pending_segments === 0;
  });
  assert.equal(
    [...(await store.list()).keys()].filter((name) => name.startsWith("whole/")).length,
    4,
  );
});

test("check finds a missing object, repair makes it a gap, and both can leave the store alone", async (t) => {
  const { pulse, payloads, config } = await stopOffloaded(t, "checked/");
  const check = async (options = {}) => {
    const lines: string[] = [];
    const code = await checkFolder(config, (line) => void lines.push(line), options);
    return { code, text: lines.join("\n") };
  };
  const whole = await check({ read_offloaded: true });
  assert.equal(whole.code, 0, whole.text);
  assert.match(whole.text, /4 segments in object storage, \d+ bytes: looked for/);
  const client = store.connect();
  const [, second] = [...(await store.list()).keys()].filter((name) => name.startsWith("checked/"));
  await client.delete(second!);
  client.close();
  const missing = await check();
  assert.equal(missing.code, 1);
  assert.ok(missing.text.includes(second!.slice("checked/".length)), missing.text);
  assert.equal((await check({ local: true })).code, 0);
  const repaired: string[] = [];
  await repairFolder(config, { dry_run: false }, (line) => void repaired.push(line));
  assert.equal((await check()).code, 0, repaired.join("\n"));
  await pulse.start();
  assert.deepEqual(await readTail(pulse), [...payloads.slice(0, 2), ...payloads.slice(4)]);
  assert.ok(existsSync(join(pulse.folder, "queue.wal")));
});

test("a check with an unreachable store says so and how to do without", async (t) => {
  const { config } = await stopOffloaded(t, "unreachable/");
  const away = { ...config, s3_endpoint: "http://127.0.0.1:1" };
  await assert.rejects(checkFolder(away, ignore), /object storage fails .*--local/);
  assert.equal(await checkFolder(away, ignore, { local: true }), 0);
});
