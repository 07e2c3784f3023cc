// `platform-pulse backup` and `restore` as an operator runs them.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, globSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { BackupKey, fetchBackup, receiveBackup } from "@platform/kernel/backup";
import { buildSchema } from "@platform/kernel/config";
import { Random } from "@platform/log/simulation";
import { pulseDefinition } from "../../src/config.ts";
import { backupFolder, restoreFolder } from "../../src/store/backup.ts";
import { checkFolder } from "../../src/store/maintenance.ts";
import { History, judge } from "../crash/history.ts";
import { targetProcess } from "../crash/target.ts";
import { runLoad } from "../crash/workload.ts";
import { startPulseHere } from "../fixture/pulse-here.ts";
import { startPulseProcess } from "../fixture/pulse-process.ts";
import type { RunningPulse } from "../fixture/running-pulse.ts";

const main = new URL("../../../../bin/platform-pulse.js", import.meta.url).pathname;

function run(pulse: RunningPulse, ...words: string[]): Promise<{ code: number; text: string }> {
  const env = {
    PATH: process.env["PATH"],
    NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
    PLATFORM_FORM: process.env["PLATFORM_FORM"],
    PLATFORM_PULSE_DATA_DIR: pulse.folder,
  };
  return new Promise((resolve) => {
    execFile(process.execPath, [main, ...words], { env }, (error, stdout, stderr) => {
      resolve({ code: Number(error?.code ?? 0), text: stdout + stderr });
    });
  });
}

async function startWithBackupFolder(t: TestContext, env: Record<string, string> = {}) {
  const pulse = await startPulseHere(t, env);
  return { pulse, ...foldersOf(pulse) };
}

function foldersOf({ folder }: RunningPulse) {
  return { log: join(folder, "queue.wal"), backup: join(folder, "backup") };
}

/** As `run` of "restore" and "check", without processes. */
async function restoreHere({ folder }: RunningPulse, backup: string): Promise<void> {
  const config = buildSchema(pulseDefinition.keys).parse({ data_dir: folder });
  await restoreFolder(config, { folder: backup, dry_run: false }, () => undefined);
  const lines: string[] = [];
  assert.equal(await checkFolder(config, (line) => void lines.push(line)), 0, lines.join("\n"));
}

test("everything acknowledged before a kill -9 is restored from a backup", async (t) => {
  const env = { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0" };
  const pulse = await startPulseProcess(t, env);
  const { log, backup } = foldersOf(pulse);
  const history = new History();
  const load = { lanes: 8, steps: 40, topicPrefix: "r" };
  const running = runLoad(targetProcess(pulse), history, new Random(1), load);
  const countPlaced = () => history.calls.filter(({ placed }) => placed !== undefined).length;
  const deadlineMs = Date.now() + 30_000;
  while (countPlaced() < 60 && Date.now() < deadlineMs) await sleep(10);
  await pulse.kill();
  await running;
  const done = await run(pulse, "backup", backup);
  assert.equal(done.code, 0, done.text);
  assert.match(done.text, /complete, \d+ files with every message that was acknowledged/);
  rmSync(log, { recursive: true });
  const restored = await run(pulse, "restore", backup);
  assert.equal(restored.code, 0, restored.text);
  assert.match((await run(pulse, "check")).text, /No damage was found/);
  await pulse.start();
  await judge(targetProcess(pulse), history.moment());
  t.diagnostic(`${history.calls.length} calls judged`);
});

test("a backup includes messages, offsets, schemas and dead letters; damaged backups are rejected", async (t) => {
  const { pulse, log, backup } = await startWithBackupFolder(t);
  const payload = "exact ✓ bytes";
  await pulse.publish({ topic: "orders", payload, message_id: "one" });
  await pulse.post("/api/v1/offsets", { group: "billing", topic: "orders", offset: 1 });
  const refused = await run(pulse, "backup", backup);
  assert.equal(refused.code, 1);
  assert.ok(refused.text.includes(`(process ${process.pid}); stop the broker first`), refused.text);
  assert.equal(existsSync(backup), false);
  await pulse.stop();
  const place = buildSchema(pulseDefinition.keys).parse({ data_dir: pulse.folder });
  const ignore = () => undefined;
  await assert.rejects(
    backupFolder(place, { folder: join(log, "inside") }, ignore),
    /inside the log's own/,
  );
  await backupFolder(place, { folder: backup }, ignore);
  await assert.rejects(backupFolder(place, { folder: backup }, ignore), /backup is not empty/);
  await assert.rejects(
    restoreFolder(place, { folder: backup, dry_run: false }, ignore),
    /queue\.wal is not empty/,
  );

  rmSync(log, { recursive: true });
  const refuse = async (pattern: RegExp) => {
    await assert.rejects(restoreFolder(place, { folder: backup, dry_run: false }, ignore), pattern);
    assert.deepEqual(readdirSync(pulse.folder).toSorted(), ["backup", "queue.wal.reserve"]);
  };
  const [journal] = globSync("data/journal/*.journal", { cwd: backup });
  const file = join(backup, journal!);
  const bytes = readFileSync(file);
  const flipped = Buffer.from(bytes);
  flipped[100]! ^= 1;
  writeFileSync(file, flipped);
  await refuse(/journal\/\d+\.journal: does not match its checksum/);
  writeFileSync(file, bytes);
  const manifest = readFileSync(join(backup, "backup.json"), "utf8");
  rmSync(join(backup, "backup.json"));
  await refuse(/has no backup\.json: not a backup, or an incomplete one/);
  writeFileSync(join(backup, "backup.json"), manifest);

  await restoreFolder(place, { folder: backup, dry_run: false }, ignore);
  await pulse.start();
  const [message] = (await pulse.get("/api/v1/tail?topic=orders&n=10")).body.messages;
  assert.deepEqual([message.message_id, message.payload], ["one", payload]);
  const { offsets } = (await pulse.get("/api/v1/offsets?group=billing")).body;
  assert.equal(offsets[0].offset, 1);
});

const token = "a-token-for-backups-only";

test("a running broker sends everything that it acknowledged before, while clients write", async (t) => {
  const env = { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0", PLATFORM_PULSE_BACKUP_TOKEN: token };
  const { pulse, log, backup } = await startWithBackupFolder(t, env);
  const history = new History();
  const load = { lanes: 8, steps: 60, topicPrefix: "r" };
  const running = runLoad(targetProcess(pulse), history, new Random(2), load);
  const countPlaced = () => history.calls.filter(({ placed }) => placed !== undefined).length;
  const deadlineMs = Date.now() + 30_000;
  while (countPlaced() < 60 && Date.now() < deadlineMs) await sleep(10);
  const before = history.moment();
  const { stream } = await fetchBackup({ url: pulse.url, token });
  const manifest = await receiveBackup({ folder: backup, service: "pulse" }, stream);
  assert.ok(countPlaced() > before.calls.filter(({ placed }) => placed !== undefined).length);
  await pulse.kill();
  await running;
  rmSync(log, { recursive: true });
  await restoreHere(pulse, backup);
  await pulse.start();
  // Calls that were acknowledged later may be in the backup or not, like those without an answer.
  const acknowledged = new Map(before.calls.map(({ messages, placed }) => [messages, placed]));
  const { topics, calls, commits } = history.moment();
  const judged = calls.map((call) => ({ ...call, placed: acknowledged.get(call.messages) }));
  const judgedCommits = commits.map((commit, index) => ({
    ...commit,
    isAcknowledged: before.commits[index]?.isAcknowledged === true,
  }));
  await judge(targetProcess(pulse), { topics, calls: judged, commits: judgedCommits });
  t.diagnostic(
    `${acknowledged.size} of ${calls.length} calls before ${JSON.stringify(manifest.mark)}`,
  );
});

test("an encrypted backup is verified and restored with its passphrase, and not from a newer version", async (t) => {
  const { pulse, log, backup } = await startWithBackupFolder(t, {
    PLATFORM_PULSE_BACKUP_TOKEN: token,
  });
  await pulse.publish({ topic: "orders", payload: "hidden", message_id: "one" });
  const { stream } = await fetchBackup({ url: pulse.url, token });
  const key = await BackupKey.create("correct horse battery");
  await receiveBackup({ folder: backup, service: "pulse", key }, stream);
  await pulse.stop();
  rmSync(log, { recursive: true });
  const file = join(pulse.folder, "passphrase");
  writeFileSync(file, "wrong horse battery\n");
  const place = buildSchema(pulseDefinition.keys).parse({ data_dir: pulse.folder });
  const options = { folder: backup, dry_run: false };
  const ignore = () => undefined;
  await assert.rejects(
    restoreFolder(place, options, ignore),
    /encrypted: a passphrase is required/,
  );
  const wrong = await run(pulse, "restore", backup, "--passphrase-file", file);
  assert.equal(wrong.code, 1);
  assert.match(wrong.text, /the passphrase is wrong/);
  assert.equal(existsSync(log), false);
  writeFileSync(file, "correct horse battery\n");
  const verified = await run(pulse, "restore", backup, "--dry-run", "--passphrase-file", file);
  assert.match(verified.text, /backup: intact, \d+ files/);
  assert.equal(existsSync(log), false);
  const restored = await run(pulse, "restore", backup, "--passphrase-file", file);
  assert.equal(restored.code, 0, restored.text);
  await pulse.start();
  const [message] = (await pulse.get("/api/v1/tail?topic=orders&n=10")).body.messages;
  assert.equal(message.payload, "hidden");
});

test("a damaged log is not backed up", async (t) => {
  const { pulse, log, backup } = await startWithBackupFolder(t);
  for (let at = 0; at < 5; at++) await pulse.publish({ topic: "orders", payload: `m${at}` });
  await pulse.kill();
  rmSync(join(log, globSync("journal/*.journal", { cwd: log }).sort()[0]!));
  const place = buildSchema(pulseDefinition.keys).parse({ data_dir: pulse.folder });
  await assert.rejects(
    backupFolder(place, { folder: backup }, () => undefined),
    /the log is damaged and was not copied \(journal[^]*run "node bin\/platform-pulse\.js check --data-dir \/\S+" for/,
  );
  assert.equal(existsSync(backup), false);
});
