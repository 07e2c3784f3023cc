// Power cuts: states built from the recorded system calls of a run, SQLite's among them, in which what was not synced is
// missing, torn or out of order. VAULT_CRASH_STATES=500 runs the long form.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openStore } from "../../src/store.ts";
import { makeFolder } from "../store/fixture.ts";
import { judge, parseHistory } from "./history.ts";
import { buildCrashState, collectSaid, parseRecording } from "./recording.ts";

const states = Number(process.env["VAULT_CRASH_STATES"] ?? 25);
const calls = "openat,close,write,pwrite64,pwritev,ftruncate,fsync,fdatasync,rename,unlink";

test(`a power cut at any of ${states} moments: what was acknowledged is there, nothing is half there`, async (context) => {
  const missing = findStraceSkip();
  if (missing !== undefined) {
    context.skip(missing);
    return;
  }
  const folder = makeFolder(context);
  const dataDir = join(folder, "recorded");
  const trace = join(folder, "trace");
  const run = spawnSync(
    "strace",
    ["-f", "-xx", "-s", "4000000", "-e", `trace=${calls}`, "-o", trace, process.execPath].concat([
      join(import.meta.dirname, "workload.ts"),
      dataDir,
      "7",
      "120",
    ]),
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  assert.equal(run.status, 0);
  const effects = parseRecording(readFileSync(trace, "latin1"), dataDir);
  const ready = effects.findIndex(({ type }) => type === "said");
  assert.ok(effects.filter(({ type }) => type === "sync").length > 50);
  let seed = 1;
  const random = () => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed / 2 ** 32;
  };
  for (let state = 0; state < states; state += 1) {
    const end = ready + 1 + Math.floor(random() * (effects.length - ready - 1));
    const root = join(folder, "state");
    buildCrashState(effects, end, root, random);
    const store = await openStore({ dataDir: root, reserveBytes: 0, partBytesMin: 1 });
    const { wrong } = await judge(store, parseHistory(collectSaid(effects, end)), new Map());
    await store.close();
    assert.deepEqual(wrong, [], `state ${state}, before effect ${end} of ${effects.length}`);
  }
  context.diagnostic(`${effects.length} effects were recorded`);
});

function findStraceSkip(): string | undefined {
  if (spawnSync("strace", ["-V"], { stdio: "ignore" }).status === 0) return undefined;
  if (process.env["PLATFORM_TEST_PEERS"] === "required") throw new Error("strace is missing");
  return "needs the Debian package strace";
}
