// Power cuts while objects move to a remote and back: in any recorded state, each acknowledged object is byte-equal, and each key
// of the remote has an owner. VAULT_CRASH_STATES=500 runs the long form.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { findStraceSkip } from "@platform/testing/strace";
import { LyingS3 } from "@platform/testing/lying-s3";
import { waitFor } from "@platform/testing/wait";
import { checkStore } from "../../src/fsck/check-store.ts";
import { readRecords } from "../../src/fsck/records.ts";
import { StoreFolders } from "../../src/disk/files.ts";
import type { Store } from "../../src/object-store.ts";
import { makeFolder, read } from "../store/fixture.ts";
import { CALLS, chooseEnd, makeRandom } from "./crash-run.ts";
import {
  buildCrashState,
  collectSaid,
  type Effect,
  parseRecording,
  recordFiles,
} from "./recording.ts";
import { openTestStore } from "./stores.ts";
import { BUCKET, makeTierBody, TIER_OPTIONS, type TierLine } from "./tier-stage.ts";

const STATES = Number(process.env["VAULT_CRASH_STATES"] ?? 8);
const ROUNDS = 2;

/** A recorded run: what reached the disk, and the port of its remote. */
function record(root: string, trace: string, port: number): Effect[] {
  mkdirSync(root);
  const before = recordFiles(root);
  const strace = ["-f", "-xx", "-s", "4000000", "-e", `trace=${CALLS}`, "-o", trace];
  const workload = join(import.meta.dirname, "tier-workload.ts");
  const program = [process.execPath, workload, root, String(port), String(ROUNDS)];
  const run = spawnSync("strace", [...strace, ...program], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  assert.equal(run.status, 0);
  return parseRecording(readFileSync(trace, "latin1"), root, before);
}

const title = `a power cut at any of ${STATES} moments of moves: acknowledged objects are whole, and no remote key is left over`;
test(title, { skip: findStraceSkip() }, async (context) => {
  const folder = makeFolder(context);
  const port = await findPort();
  const effects = record(join(folder, "recorded"), join(folder, "trace"), port);
  const cut = join(folder, "state");
  await requireStubs(effects, cut);
  const random = makeRandom(1);
  for (let state = 0; state < STATES; state += 1) {
    const end = chooseEnd(effects, random);
    buildCrashState(effects, end, cut, [""], random);
    const lines = collectSaid(effects, end)
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as TierLine);
    await using remote = await LyingS3.start({ port });
    for (const line of lines) {
      if (line.at !== "remote") continue;
      if (line.body === null) remote.objects.delete(line.name);
      else if (!remote.objects.has(line.name)) keep(remote, line.name, line.body);
    }
    const store = await openTestStore(cut, 1, TIER_OPTIONS);
    const what = `state ${state}, before effect ${end} of ${effects.length}`;
    try {
      await requireWhole(store, lines, what);
      await requireOwned(store, remote, what);
      const { damaged, missing } = await store.maintenance.scrub();
      assert.deepEqual([damaged, missing], [[], []], what);
    } finally {
      await store.close();
    }
    // The records are there from which a lost index is rebuilt.
    const { findings, isWhole } = await checkStore({ dataDir: cut, isRepair: false });
    assert.ok(isWhole, `${what}: ${JSON.stringify(findings)}`);
  }
  context.diagnostic(`${effects.length} effects were recorded`);
});

/**
 * Cuts the power right after each commit, with the loss of everything that is not synced: what the index then has in the remote
 * has its stub on disk, from which a lost index is rebuilt.
 */
async function requireStubs(effects: readonly Effect[], cut: string): Promise<void> {
  let seen = 0;
  for (const end of listCommits(effects)) {
    buildCrashState(effects, end, cut, [""], () => 0);
    const folders = new StoreFolders(cut);
    const index = new DatabaseSync(folders.index);
    const rows = index
      .prepare("select id, segment, position from blobs where kind = 'remote'")
      .all();
    index.close();
    if (rows.length === 0) continue;
    const records = await readRecords(folders);
    for (const { id, segment, position } of rows) {
      const place = records.get(Number(id))?.blob.place;
      const stub = place?.kind === "remote" ? place.stub : undefined;
      assert.deepEqual(
        stub,
        { segment, position },
        `the stub of body ${String(id)}, cut at ${end}`,
      );
      seen += 1;
    }
  }
  assert.ok(seen > 0, "some bodies had moved");
}

/** Moments right after syncs of the index before which something was written to a segment. */
function listCommits(effects: readonly Effect[]): number[] {
  const paths = new Map<number, string>();
  const commits: number[] = [];
  let hasAppended = false;
  for (const [index, effect] of effects.entries()) {
    if (effect.type === "create") paths.set(effect.file, effect.path);
    if (effect.type === "write" && paths.get(effect.file)?.startsWith("segments/") === true)
      hasAppended = true;
    if (effect.type !== "sync" || !hasAppended) continue;
    if (paths.get(effect.file)?.endsWith("-wal") !== true) continue;
    hasAppended = false;
    commits.push(index + 1);
  }
  return commits;
}

function keep(remote: LyingS3, name: string, body: string): void {
  remote.objects.set(name, { bytes: Buffer.from(body, "base64"), metadata: {}, checksums: {} });
}

async function requireWhole(store: Store, lines: readonly TierLine[], what: string): Promise<void> {
  // The last acknowledged change of each key, and one that had begun.
  const allowed = new Map<string, number[]>();
  for (const line of lines) {
    if (line.at === "begin") allowed.set(line.key, [...(allowed.get(line.key) ?? [0]), line.round]);
    if (line.at === "end") allowed.set(line.key, [line.round]);
  }
  for (const [key, rounds] of allowed) {
    const found = await read(store, key).catch((error: unknown) => {
      assert.equal(
        (error as { code?: string }).code,
        "NoSuchKey",
        `${what}: ${key}: ${String(error)}`,
      );
      return undefined;
    });
    const isAllowed = rounds.some((round) =>
      round === 0 ? found === undefined : found?.equals(makeTierBody(key, round)) === true,
    );
    assert.ok(isAllowed, `${what}: ${key} is not of the rounds ${rounds.join()}`);
  }
}

// Keys whose upload was not acknowledged are deleted a day later; then only those of moved objects are there.
async function requireOwned(store: Store, remote: LyingS3, what: string): Promise<void> {
  const cold = (): string[] => remote.keys("cold").filter((key) => !key.endsWith("store.json"));
  const { objects } = await store.objects.list({ bucket: BUCKET, maxKeys: 100 });
  const moved = objects.filter(({ storageClass }) => storageClass === "COLD").length;
  await waitFor(async () => {
    const tasks = await store.tasks.count();
    const deletes = tasks.find(({ kind }) => kind === "delete-remote");
    return cold().length <= moved + (deletes?.waiting ?? 0);
  }, `${what}: ${cold().length} keys in the remote for ${moved} objects`);
  assert.ok(cold().length >= moved, what);
}

async function findPort(): Promise<number> {
  await using probe = await LyingS3.start();
  return Number(new URL(probe.endpoint).port);
}
