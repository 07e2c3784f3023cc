// `platform up` killed in its start, and started again: no service stays behind, no port stays in use.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "@platform/kernel/testing";
import { findStarted, makeFolder, run } from "@platform/testing/platform-process";

/** The long form has 50. */
const ROUNDS = Number(process.env["PLATFORM_KILLED_STARTS"] ?? 2);
const SPAN_MS = 4_000;

test(
  `a platform killed ${ROUNDS} times in its start leaves no service, and starts again on its ports each time`,
  { skip: process.platform === "linux" ? false : "requires /proc" },
  async () => {
    const data = join(makeFolder(), "data");
    const names = ["gateway", "console", "sample", "tunnel", "runtime"];
    const addresses = [];
    for (const name of names) addresses.push(`--${name}-addr`, `127.0.0.1:${await findFreePort()}`);
    const args = ["up", "--json", "--only", "gateway,tunnel", "--data", data, ...addresses];
    for (let round = 0; round < ROUNDS; round += 1) {
      const killed = run(args);
      await sleep((SPAN_MS * (round + 1)) / (ROUNDS + 1));
      killed.child.kill("SIGKILL");
      await killed.exit;
      const up = run(args);
      const { services } = await up.waitFor(findStarted);
      const pids = services.map(({ pid }) => pid);
      assert.deepEqual(new Set(findServices(data)), new Set(pids), `round ${round}`);
      up.child.kill("SIGKILL");
      await up.exit;
      for (let ms = 0; ms < 30_000 && findServices(data).length > 0; ms += 50) await sleep(50);
      assert.deepEqual(findServices(data), [], `round ${round}: they end by themselves, too`);
    }
  },
);

function findServices(data: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, "utf8");
        return environment.includes(`PLATFORM_SUPERVISOR_DATA=${data}\0`);
      } catch {
        return false;
      }
    });
}
