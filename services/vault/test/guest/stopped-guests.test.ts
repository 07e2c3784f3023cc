// A store whose modules are stopped: writes go on, the work of triggers waits, and is done after a start with modules.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { listKeys } from "../job/rig.ts";
import { callJson, readJson } from "../serving/json-api.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { identity, putModule } from "./guests.ts";

/** `VAULT_TRIGGERED_PUTS=100000` is the long form. It also compares the slowest PUTs. */
const PUTS = Number(process.env["VAULT_TRIGGERED_PUTS"] ?? 300);
const IS_LONG = PUTS >= 10_000;
const LANES = 16;
const BODY = Buffer.alloc(4_096, 7);
const P99_MAX = 1.25;
/** Of the daemon after all runs. It does not grow with their number. */
const MEMORY_MIB_MAX = 1_000;

let serving: Serving;
before(async () => {
  serving = await serve({ env: { PLATFORM_VAULT_GUEST_THREADS: "0" } });
});
after(() => serving[Symbol.asyncDispose]());

// The buckets in turns, so that both have the same load. Resolves to the times of each.
async function putInTurns(buckets: readonly string[]): Promise<Map<string, number[]>> {
  const times = new Map(buckets.map((bucket): [string, number[]] => [bucket, []]));
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < PUTS * buckets.length) {
      const number = next++;
      const bucket = buckets[number % buckets.length]!;
      const key = `in/${Math.floor(number / buckets.length)}`;
      const begun = performance.now();
      await serving.s3.must("PUT", `/${bucket}/${key}`, { body: BODY });
      times.get(bucket)!.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return times;
}

async function countWaiting(): Promise<number> {
  const { kinds } = await readJson<{ kinds: { kind: string; waiting: number }[] }>(
    callJson(serving, "GET", "/admin/tasks"),
  );
  return kinds.find(({ kind }) => kind === "trigger")?.waiting ?? 0;
}

function readMemoryMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)![1]) / 1_024;
}

function findP99(times: readonly number[]): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length * 0.99)]!;
}

test("PUTs into a bucket with a trigger go on while no module runs, and all outputs are there afterwards", async () => {
  const { s3, vault } = serving;
  // It is validated all the same.
  await putModule(serving, "copy", identity);
  for (const bucket of ["plain", "triggered", "out"]) await s3.must("PUT", `/${bucket}`);
  const trigger = {
    id: "copy",
    events: ["objstore:ObjectCreated:*"],
    module: "copy",
    target: { bucket: "out", key: "{name}" },
    enabled: true,
  };
  await s3.must("PUT", "/triggered?triggers", { body: JSON.stringify({ triggers: [trigger] }) });
  const times = await putInTurns(["plain", "triggered"]);
  assert.equal(await countWaiting(), PUTS);
  const refused = await s3.send("POST", "/triggered/in/0?transform&module=copy");
  assert.equal(refused.status, 503, refused.text);
  assert.match(refused.text, /guest_threads/);
  if (IS_LONG) {
    const [plain, triggered] = [times.get("plain")!, times.get("triggered")!].map(findP99);
    console.log(`p99 in ms: ${plain} without, ${triggered} with a trigger`);
    assert.ok(triggered! <= plain! * P99_MAX, `${triggered} ms, ${plain} ms without a trigger`);
  }
  assert.deepEqual(await listKeys(s3, "out"), []);

  await vault.stop();
  await vault.start({ PLATFORM_VAULT_GUEST_THREADS: "2" });
  const wait = 60_000 + PUTS * 50;
  await waitFor(
    async () => (await countWaiting()) === 0 || undefined,
    "the end of all tasks",
    wait,
  );
  const mib = readMemoryMib(vault.pid);
  assert.ok(mib < MEMORY_MIB_MAX, `${mib} MiB`);
  const expected = Array.from({ length: PUTS }, (_, number) => String(number)).toSorted();
  assert.deepEqual(await listKeys(s3, "out"), expected);
  assert.equal((await s3.must("GET", "/out/0")).text.length, BODY.length);
});
