import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { readTreeUsage } from "../harness/usage.ts";

const BUSY_MS = 300;

test(
  "CPU time and memory of a tree include grandchildren",
  { skip: existsSync("/proc/self/smaps_rollup") ? false : "needs Linux's /proc" },
  async (t) => {
    const busy = `const end = performance.now() + ${BUSY_MS}; while (performance.now() < end); console.log("done"); setInterval(() => {}, 1000)`;
    const parent = spawn("sh", ["-c", '"$0" -e "$1" & wait', process.execPath, busy]);
    t.after(() => {
      for (const pid of readTreeUsage(parent.pid ?? 0).pids.toReversed())
        process.kill(pid, "SIGKILL");
    });
    await once(parent.stdout, "data");
    const usage = readTreeUsage(parent.pid ?? 0);
    assert.ok(usage.pids.length >= 2, "the shell and its child");
    assert.ok(usage.cpuMs >= 30, `${usage.cpuMs} ms of CPU time`);
    assert.ok(usage.systemMs <= usage.cpuMs);
    assert.ok(usage.pssBytes > 10 * 2 ** 20, `${usage.pssBytes} bytes`);
  },
);
