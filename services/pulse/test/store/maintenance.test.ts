// `platform-pulse check` and `repair` as an operator runs them, and a start that refuses a damaged log.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { buildSchema } from "@platform/kernel/config";
import { pulseDefinition } from "../../src/config.ts";
import { checkFolder } from "../../src/store/maintenance.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";

const main = new URL("../../../../bin/platform-pulse.js", import.meta.url).pathname;

interface Outcome {
  code: number;
  text: string;
}

function run(pulse: PulseHere, ...words: string[]): Promise<Outcome> {
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

/** As `run` of "check", without a process. */
async function checkHere({ folder }: PulseHere): Promise<number> {
  const config = buildSchema(pulseDefinition.keys).parse({ data_dir: folder });
  return checkFolder(config, () => undefined);
}

test("a damaged log is not opened, the error names the command; check lists the damage and repair fixes it", async (t) => {
  const pulse = await startPulseHere(t);
  for (let at = 0; at < 20; at++) await pulse.publish({ topic: "orders", payload: `m${at}` });
  const running = await run(pulse, "check");
  assert.equal(running.code, 1);
  assert.match(running.text, /another process has the log open/);
  await pulse.kill();
  assert.equal(await checkHere(pulse), 0);
  const log = join(pulse.folder, "queue.wal");
  const [journal] = globSync("journal/*.journal", { cwd: log });
  const file = join(log, journal!);
  const bytes = readFileSync(file);
  rmSync(file);
  await assert.rejects(
    pulse.start(),
    /run "node bin\/platform-pulse\.js check --data-dir \/[^\s"]+" for/,
  );
  const check = await run(pulse, "check");
  assert.equal(check.code, 1);
  assert.ok(check.text.includes(`damaged   ${journal!}`), check.text);
  const repairing = `run: node bin/platform-pulse.js repair --data-dir ${pulse.folder}\n`;
  assert.ok(check.text.includes(repairing), check.text);
  const dry = await run(pulse, "repair", "--dry-run");
  assert.match(dry.text, /Nothing was changed/);
  // The file is found again: nothing was lost by looking.
  writeFileSync(file, bytes);
  await pulse.start();
  assert.equal((await pulse.get("/api/v1/tail?topic=orders&n=100")).body.messages.length, 20);
  await pulse.kill();
  const broken = globSync("journal/*.journal", { cwd: log }).sort()[0]!;
  rmSync(join(log, broken));
  const repair = await run(pulse, "repair");
  assert.deepEqual([repair.code, /Repaired/.test(repair.text)], [0, true], repair.text);
  assert.equal(await checkHere(pulse), 0);
  await pulse.start();
  const metrics = await pulse.get("/metrics");
  assert.match(String(metrics.body), /platform_pulse_log_damage_found 0/);
});

test("damage to stored messages is an error in the log, counted, kept, and costs no other message", async (t) => {
  const pulse = await startPulseHere(t);
  for (let at = 0; at < 20; at++) await pulse.publish({ topic: "orders", payload: `order-${at}!` });
  await pulse.kill();
  const log = join(pulse.folder, "queue.wal");
  const [journal] = globSync("journal/*.journal", { cwd: log });
  const file = join(log, journal!);
  const bytes = readFileSync(file);
  const place = bytes.indexOf("order-7!");
  assert.ok(place > 0);
  bytes[place] = bytes[place]! ^ 0x10;
  writeFileSync(file, bytes);

  await pulse.start();
  const lines = pulse.errors.map((line) => JSON.parse(line) as { msg: string; file?: string });
  const [line] = lines.filter(({ msg }) => /stored data is damaged/.test(msg));
  assert.equal(line?.file, journal);
  const { body } = await pulse.get("/api/v1/tail?topic=orders&n=100");
  const payloads = (body.messages as { payload: string }[]).map(({ payload }) => payload);
  assert.deepEqual(
    payloads,
    Array.from({ length: 20 }, (_, at) => `order-${at}!`).filter((_, at) => at !== 7),
  );
  const metrics = String((await pulse.get("/metrics")).body);
  assert.match(metrics, /^platform_pulse_log_damage_found 1$/m);
  assert.match(metrics, /^platform_pulse_log_quarantine_files 1$/m);
  assert.equal(globSync("quarantine/*", { cwd: log }).length, 1);
});
