// Connection limits derived from the file descriptor limit.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { checkDescriptorLimit } from "../../src/worker/descriptor-check.ts";
import { planConnections, warnOfDescriptorLimit } from "../../src/worker/descriptors.ts";
import { LIMITS_DEFAULT } from "../../src/shared-state/index.ts";

const { shedConnectionsMax } = LIMITS_DEFAULT;

test("without a known limit, max_connections is accepted", () => {
  const plan = planConnections(20_000, { limit: undefined, workers: 8 });
  assert.deepEqual(plan, {
    connectionsMax: 20_000,
    shedConnectionsMax,
    upstreamsMax: Infinity,
  });
});

test("a sufficient limit keeps max_connections; a lower one reduces it", () => {
  const enough = 64 + 4 * (16 + 2 * 1_000 + shedConnectionsMax);
  const whole = planConnections(1_000, { limit: enough, workers: 4 });
  assert.deepEqual(whole, { connectionsMax: 1_000, shedConnectionsMax, upstreamsMax: 1_000 });
  const reduced = planConnections(1_000, { limit: enough - 1, workers: 4 });
  assert.equal(reduced.connectionsMax, 1_000);
  assert.ok(reduced.shedConnectionsMax < shedConnectionsMax);
  const few = planConnections(1_000, { limit: 64 + 4 * (16 + 2 * 1_000), workers: 4 });
  assert.ok(few.connectionsMax < 1_000);
  assert.ok(few.connectionsMax + few.shedConnectionsMax <= few.upstreamsMax);
});

test("a limit that platform doctor accepts causes a warning only if the operator chose a number of connections", () => {
  const report = (connections: number, limit: number): string[] => {
    const lines: string[] = [];
    const write = (line: string): void => void lines.push(line);
    const log = createLogger({ service: "gate", format: "json", level: "debug", write });
    warnOfDescriptorLimit(connections, { limit, workers: 2 }, log);
    return lines.map((line) => (JSON.parse(line) as { level: string }).level);
  };
  assert.deepEqual(report(LIMITS_DEFAULT.connectionsMax, 20_000), ["info"]);
  assert.deepEqual(report(LIMITS_DEFAULT.connectionsMax, 1_024), ["warn"]);
  assert.deepEqual(report(30_000, 20_000), ["warn"]);
  assert.deepEqual(report(1_000, 20_000), []);
});

test("a configuration is judged without starting the gateway", () => {
  const path = join(mkdtempSync(join(tmpdir(), "platform-gate-")), "config.json");
  writeFileSync(path, JSON.stringify({ max_connections: 30_000, workers: 2 }));
  const argv = ["--config", path];
  const found = checkDescriptorLimit({ argv, env: {} }, 20_000);
  assert.equal(found?.isFault, true);
  assert.equal(found.needed, 64 + 2 * (16 + 2 * 30_000 + shedConnectionsMax));
  const env = { PLATFORM_GATE_MAX_CONNECTIONS: "100" };
  assert.equal(checkDescriptorLimit({ argv, env }, 20_000), undefined);
  rmSync(dirname(path), { recursive: true });
});

for (const limit of [100, 256, 1_024, 4_096, 65_536]) {
  for (const workers of [1, 2, 8]) {
    test(`${limit} descriptors for ${workers} workers are enough for what is accepted`, () => {
      const plan = planConnections(1_000_000, { limit, workers });
      assert.ok(plan.connectionsMax >= 1);
      assert.ok(plan.shedConnectionsMax >= 1);
      const used =
        workers * (16 + plan.connectionsMax + plan.shedConnectionsMax + plan.upstreamsMax);
      if (limit > 64 + workers * 20) assert.ok(64 + used <= limit, `${used}`);
    });
  }
}
