// A writer that is killed at any moment loses nothing that it has acknowledged, and until then its readers see nothing older
// than that. VAULT_KILL_ROUNDS=200 runs the long form.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeFolder } from "../store/fixture.ts";
import { requireRightUsage } from "../store/usage-scan.ts";
import { judge, parseHistory, type HistoryLine } from "./history.ts";
import { nameDrives, openTestStore, replaceDrive, waitUntilWhole } from "./stores.ts";

const wanted = process.env["VAULT_KILL_ROUNDS"];

const onOneDrive = Number(wanted ?? 6);
test(`kill -9 during random work, ${onOneDrive} times: everything acknowledged is present and intact`, async (context) => {
  const root = makeFolder(context);
  let base = new Map<string, string>();
  let acknowledged = 0;
  for (let round = 1; round <= onOneDrive; round += 1) {
    const lines = await runUntilKilled(root, 1, round, async () => undefined);
    acknowledged += countAcknowledged(lines);
    base = await check(root, 1, lines, base, `round ${round}`);
    assert.deepEqual(readdirSync(join(root, "staging")), []);
  }
  context.diagnostic(`${acknowledged} operations were acknowledged`);
  assert.ok(acknowledged > onOneDrive);
});

/** Readers of each key. */
const READERS = 2;

/** Events of a drive around a kill. */
const FATES = [
  "nothing",
  "pulled at the kill",
  "pulled before",
  "filled anew",
  "back again",
] as const;

const onThreeDrives = Number(wanted ?? 4);
test(`kill -9 over three drives, ${onThreeDrives} times, with one of them pulled, replaced or left alone: any two have everything acknowledged, and heal the third`, async (context) => {
  const root = makeFolder(context);
  const drives = nameDrives(root, 3);
  for (const drive of drives) mkdirSync(drive);
  let base = new Map<string, string>();
  let acknowledged = 0;
  for (let round = 1; round <= onThreeDrives; round += 1) {
    const fate = FATES[round % FATES.length]!;
    const drive = drives[(round * 7) % 3]!;
    const what = `round ${round}, ${drive} ${fate}`;
    if (fate === "filled anew") replaceDrive(drive);
    const lines = await runUntilKilled(root, 3, round, async (afterMs) => {
      if (fate !== "pulled before" && fate !== "back again") return;
      await pause(afterMs / 3);
      renameSync(drive, `${drive}-away`);
      await pause(afterMs / 3);
      if (fate === "back again") renameSync(`${drive}-away`, drive);
    });
    acknowledged += countAcknowledged(lines);
    if (fate === "pulled at the kill") renameSync(drive, `${drive}-away`);
    if (fate.startsWith("pulled")) {
      base = await check(root, 3, lines, base, `${what}, without it`);
      renameSync(`${drive}-away`, drive);
      // The data of two drives counts, regardless of the third.
      base = await check(root, 3, [], base, `${what}, with it again`);
    } else {
      base = await check(root, 3, lines, base, what);
    }
    const other = drives[(round * 7 + 1 + (round % 2)) % 3]!;
    renameSync(other, `${other}-away`);
    base = await check(root, 3, [], base, `${what}, then without ${other}`);
    renameSync(`${other}-away`, other);
  }
  context.diagnostic(`${acknowledged} operations were acknowledged`);
  assert.ok(acknowledged > onThreeDrives);
});

/** Checks the contents, and lets the store heal. */
async function check(
  root: string,
  drives: number,
  lines: readonly HistoryLine[],
  base: ReadonlyMap<string, string>,
  what: string,
): Promise<Map<string, string>> {
  const store = await openTestStore(root, drives);
  try {
    const { wrong, state } = await judge(store, lines, base);
    assert.deepEqual(wrong, [], what);
    await requireRightUsage(store, what);
    const areAllThere = nameDrives(root, drives).every((drive) => existsSync(drive));
    if (drives > 1 && areAllThere) await waitUntilWhole(store);
    return state;
  } finally {
    await store.close();
  }
}

/** `meanwhile` receives the time until the kill. */
async function runUntilKilled(
  root: string,
  drives: number,
  seed: number,
  meanwhile: (afterMs: number) => Promise<void>,
): Promise<HistoryLine[]> {
  const workload = join(import.meta.dirname, "workload.ts");
  const options = [`${drives}`, `${seed}`, "1000000", `${READERS}`];
  const child = spawn(process.execPath, [workload, root, ...options], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const afterMs = 30 + ((seed * 37) % 300);
  let text = "";
  let ended: Promise<void> | undefined;
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (chunk: string) => {
    text += chunk;
    // The clock starts with the end of the first operation, however slow the start is.
    if (!text.includes('"at":"end"')) return;
    ended ??= Promise.all([meanwhile(afterMs), pause(afterMs)]).then(() => {
      child.kill("SIGKILL");
    });
  });
  await new Promise((resolve) => child.once("close", resolve));
  await ended;
  return parseHistory(text);
}

function countAcknowledged(lines: readonly HistoryLine[]): number {
  return lines.filter((line) => line.at === "end" && line.code === undefined).length;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
