// The command of the soak tests, and its judgement of guests: no soak is run.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { assertLevel, assertUnharmed, type GuestSoakFigures } from "./guests.ts";

const RUN = fileURLToPath(new URL("run.ts", import.meta.url));

function soak(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  const { promise, resolve } = Promise.withResolvers<{
    code: number;
    stdout: string;
    stderr: string;
  }>();
  execFile(process.execPath, [RUN, ...args], (error, stdout, stderr) =>
    resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
  );
  return promise;
}

test("--help prints the usage; arguments that are not usable are named", async () => {
  const help = await soak("--help");
  assert.deepEqual([help.code, help.stderr], [0, ""]);
  assert.match(help.stdout, /^usage: npm run soak .*guests.*--minutes N/);
  const cases: [args: string[], reason: RegExp][] = [
    [["--minute", "1"], /--minute/],
    [["nothing"], /There is no soak "nothing"/],
    [["guests", "--minutes", "long"], /"long" is no number of minutes/],
    [["guests", "--runtime", "deno"], /"deno" is no runtime/],
  ];
  for (const [args, reason] of cases) {
    const { code, stdout, stderr } = await soak(...args);
    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
    assert.match(stderr, reason);
    assert.match(stderr, /\nusage: /);
  }
});

const HOLDINGS = { openFiles: 1, rssMib: 1, heapMib: 1, externalMib: 1, arrayBuffersMib: 1 };
const even = (median: number) => ({ median, low: median, high: median, phases: 9 });
const figures = (changed: Partial<GuestSoakFigures>): GuestSoakFigures => ({
  good: 1,
  bad: 1,
  failures: 1,
  p99AloneMs: 2,
  p99BesideMs: 2,
  growth: even(1),
  alone: even(2),
  before: HOLDINGS,
  after: HOLDINGS,
  rssFloorsMib: [186, 260, 263],
  ...changed,
});

test("harm to good guests shows in most pairs, or rarely on a steady machine", () => {
  assertUnharmed(figures({}));
  assert.throws(() => assertUnharmed(figures({ growth: even(1.3) })), /1\.3/);
  assert.throws(() => assertUnharmed(figures({ p99BesideMs: 3 })), /3 ms beside/);
  // Some seconds of other work on the machine have decided about all requests together.
  assertUnharmed(figures({ p99BesideMs: 3, alone: { median: 2, low: 1, high: 9, phases: 9 } }));
});

test("memory that grows with the load is no leak, memory that grows until the end is", () => {
  assertLevel(figures({}));
  assert.throws(() => assertLevel(figures({ rssFloorsMib: [186, 225, 263] })), /225 to 263 MiB/);
  assert.throws(() => assertLevel(figures({ rssFloorsMib: [] })), /too short/);
});
