// A disk that becomes full at any write: the caller gets an error, nothing is damaged, and work continues when there is
// room again. System calls of a run are made to fail, including those of SQLite.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { findStraceSkip } from "@platform/testing/strace";
import { openStore } from "../../src/open-store.ts";
import { makeFolder } from "../store/fixture.ts";
import { FULL, judge, parseHistory } from "./history.ts";

/** The first failing call of each thread, and the number of failing calls; the calls before it prepare the store. */
const WINDOWS = [
  { calls: "pwrite64,pwritev", first: 120, count: 40 },
  { calls: "pwrite64,pwritev", first: 130, count: 60_000 },
  { calls: "rename", first: 4, count: 60_000 },
];

const skip = findStraceSkip();
for (const { calls, first, count } of WINDOWS) {
  test(
    `${count} of ${calls} fail with ENOSPC from the ${first}th on: refused, and nothing is damaged`,
    { skip },
    async (context) => {
      const dataDir = makeFolder(context);
      const workload = join(import.meta.dirname, "workload.ts");
      const run = spawnSync(
        "strace",
        ["-f", "-o", "/dev/null", "-e", `trace=${calls}`, "-e"].concat([
          `inject=${calls}:error=ENOSPC:when=${first}..${first + count - 1}`,
          process.execPath,
          workload,
          dataDir,
          "1",
          "11",
          "400",
        ]),
        { stdio: ["ignore", "pipe", "pipe"], encoding: "utf8", maxBuffer: 2 ** 26 },
      );
      assert.equal(run.status, 0, run.stderr.slice(-2_000));
      const lines = parseHistory(run.stdout);
      const refused = lines.filter((line) => line.at === "end" && line.code === FULL).length;
      const store = await openStore({ dataDir, reserveBytes: 0, partBytesMin: 1 });
      const { wrong } = await judge(store, lines, new Map());
      const scrubbed = await store.maintenance.scrub();
      await store.close();
      assert.deepEqual(wrong, []);
      assert.deepEqual([scrubbed.damaged, scrubbed.missing], [[], []]);
      assert.ok(refused > 0, "some write has failed for lack of room");
      context.diagnostic(`${refused} of ${lines.length} were refused`);
    },
  );
}
