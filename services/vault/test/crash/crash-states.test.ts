// Power cuts: states built from the recorded system calls of a run, including those of SQLite, in which unsynced writes are
// missing, torn or out of order, on each drive separately. VAULT_CRASH_STATES=500 runs the long form.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { test, type TestContext } from "node:test";
import { findStraceSkip } from "@platform/testing/strace";
import { makeFolder } from "../store/fixture.ts";
import { CALLS, chooseEnd, findReady, makeRandom } from "./crash-run.ts";
import { judge, parseHistory, type HistoryLine } from "./history.ts";
import {
  buildCrashState,
  collectSaid,
  parseRecording,
  recordFiles,
  type Effect,
} from "./recording.ts";
import { nameDrives, openTestStore, replaceDrive, waitUntilWhole } from "./stores.ts";

const wanted = process.env["VAULT_CRASH_STATES"];

const skip = findStraceSkip();
const onOneDrive = Number(wanted ?? 16);
test(
  `a power cut at any of ${onOneDrive} moments: acknowledged writes are complete, others are complete or absent`,
  { skip },
  async (context) => {
    const folder = makeFolder(context);
    const effects = record(folder, 1, 7, 120);
    const random = makeRandom(1);
    for (let state = 0; state < onOneDrive; state += 1) {
      const end = chooseEnd(effects, random);
      const root = join(folder, "state");
      buildCrashState(effects, end, root, [""], random);
      const store = await openTestStore(root, 1);
      const { wrong } = await judge(store, parseHistory(collectSaid(effects, end)), new Map());
      await store.close();
      assert.deepEqual(wrong, [], `state ${state}, before effect ${end} of ${effects.length}`);
    }
    context.diagnostic(`${effects.length} effects were recorded`);
  },
);

const onThreeDrives = Number(wanted ?? 4);
test(
  `a power cut over three drives at any of ${onThreeDrives} moments, with or without the loss of one: any two have all acknowledged writes, and heal the third`,
  { skip },
  async (context) => {
    const folder = makeFolder(context);
    const effects = record(folder, 3, 7, 40);
    await cutOverDrives(context, folder, effects, onThreeDrives, new Map());
  },
);

const firstStarts = Number(wanted ?? 3);
test(
  `a power cut at any of ${firstStarts} moments of the first start: the next one creates the store, or uses it as it is`,
  { skip },
  async (context) => {
    const folder = makeFolder(context);
    const effects = record(folder, 3, 5, 1);
    const random = makeRandom(1);
    const root = join(folder, "state");
    const names = nameDrives(root, 3).map((drive) => basename(drive));
    for (let state = 0; state < firstStarts; state += 1) {
      const end = Math.floor(random() * findReady(effects));
      const what = `state ${state}, before effect ${end} of ${effects.length}`;
      buildCrashState(effects, end, root, names, random);
      // A drive without an identity must be empty.
      for (const drive of nameDrives(root, 3)) {
        if (!existsSync(join(drive, "drive.json"))) rmSync(drive, { recursive: true });
        mkdirSync(drive, { recursive: true });
      }
      await judgeAndHeal(root, [], new Map(), what, () => undefined);
    }
  },
);

const whileHealing = Number(wanted ?? 3);
test(
  `a power cut at any of ${whileHealing} moments while a drive is being filled again: acknowledged writes survive`,
  { skip },
  async (context) => {
    const folder = makeFolder(context);
    const recorded = join(folder, "recorded");
    prepare(recorded, 3);
    const first = runWorkload([], recorded, 3, 3, 60);
    const store = await openTestStore(recorded, 3);
    const lines = parseHistory(first);
    const { wrong, state } = await judge(store, lines, new Map());
    await store.close();
    assert.deepEqual(wrong, []);
    replaceDrive(nameDrives(recorded, 3)[1]!);
    const effects = record(folder, 3, 8, 40);
    await cutOverDrives(context, folder, effects, whileHealing, state, 1);
  },
);

/** `isLacking` is an incomplete drive: no other one may be lost at the same time. */
async function cutOverDrives(
  context: TestContext,
  folder: string,
  effects: readonly Effect[],
  states: number,
  base: ReadonlyMap<string, string>,
  isLacking?: number,
): Promise<void> {
  const random = makeRandom(1);
  const root = join(folder, "state");
  const drives = nameDrives(root, 3);
  const names = drives.map((drive) => basename(drive));
  for (let state = 0; state < states; state += 1) {
    const end = chooseEnd(effects, random);
    buildCrashState(effects, end, root, names, random);
    const lost = isLacking ?? Math.floor(random() * 3);
    const fate = (["all there", "gone", "empty"] as const)[Math.floor(random() * 3)]!;
    if (fate === "gone") rmSync(drives[lost]!, { recursive: true });
    if (fate === "empty") replaceDrive(drives[lost]!);
    const what = `state ${state}, before effect ${end} of ${effects.length}, drive ${lost} ${fate}`;
    const lines = parseHistory(collectSaid(effects, end));
    const found = await judgeAndHeal(root, lines, base, what, () => {
      if (fate === "gone") replaceDrive(drives[lost]!);
    });
    // Tests if all three are complete: another one is lost.
    rmSync(drives[(lost + 1 + Math.floor(random() * 2)) % 3]!, { recursive: true });
    const store = await openTestStore(root, 3);
    const again = await judge(store, lines, base);
    await store.close();
    assert.deepEqual(again.wrong, [], `${what}, then another`);
    assert.deepEqual(again.state, found, `${what}, then another`);
  }
  context.diagnostic(`${effects.length} effects were recorded`);
}

async function judgeAndHeal(
  root: string,
  lines: readonly HistoryLine[],
  base: ReadonlyMap<string, string>,
  what: string,
  mend: () => void,
): Promise<Map<string, string>> {
  const store = await openTestStore(root, 3).catch((error: unknown) => {
    throw new Error(what, { cause: error });
  });
  try {
    const { wrong, state } = await judge(store, lines, base);
    assert.deepEqual(wrong, [], what);
    mend();
    await waitUntilWhole(store);
    const scrubbed = await store.maintenance.scrub();
    assert.deepEqual([scrubbed.damaged, scrubbed.missing], [[], []], what);
    return state;
  } finally {
    await store.close();
  }
}

/** Runs the workload in `recorded`, on the existing files, and returns its effects on disk. */
function record(folder: string, drives: number, seed: number, operations: number): Effect[] {
  const root = join(folder, "recorded");
  const trace = join(folder, "trace");
  const before = prepare(root, drives);
  const strace = ["strace", "-f", "-xx", "-s", "4000000", "-e", `trace=${CALLS}`, "-o", trace];
  runWorkload(strace, root, drives, seed, operations);
  const effects = parseRecording(readFileSync(trace, "latin1"), root, before);
  assert.ok(effects.filter(({ type }) => type === "sync").length > 20);
  return effects;
}

/** Runs the workload, under another program if one is given. Returns its output. */
function runWorkload(
  under: readonly string[],
  root: string,
  drives: number,
  seed: number,
  operations: number,
): string {
  const workload = join(import.meta.dirname, "workload.ts");
  const [program = "", ...values] = [...under, process.execPath, workload, root].concat(
    [drives, seed, operations].map(String),
  );
  const run = spawnSync(program, values, {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
    maxBuffer: 2 ** 26,
  });
  assert.equal(run.status, 0);
  return run.stdout;
}

function prepare(root: string, drives: number): Effect[] {
  for (const drive of nameDrives(root, drives)) mkdirSync(drive, { recursive: true });
  return recordFiles(root);
}
