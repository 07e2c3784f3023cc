// The fleet with real threads: changes reach every worker, those that die or fall silent are replaced.
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { Fleet } from "../../src/control/worker-pool.ts";
import { probeListenAddress } from "../../src/control/listen-probe.ts";
import {
  ActiveCounts,
  LIMITS_DEFAULT,
  ROUTE_TIMEOUTS_DEFAULT,
  allocateSharedBuffers,
  makeRouteKey,
} from "../../src/shared-state/index.ts";
import type { GlobalSpec, MetricBlock, RouteSpec } from "../../src/shared-state/index.ts";

const entry = new URL("../fixture/acking-worker.ts", import.meta.url);

const globals: GlobalSpec = {
  serviceVersion: "0",
  trustedProxies: [],
  ownPaths: [],
  control: { socketPath: "", secret: "" },
  limits: LIMITS_DEFAULT,
};

function makeRoute(prefix: string): RouteSpec {
  return {
    key: makeRouteKey(undefined, prefix),
    prefix,
    slot: 0,
    metricsId: 1,
    targets: [{ url: "http://t", weight: 1, slot: 3 }],
    balancer: "round_robin",
    stripPrefix: false,
    hostHeader: "client",
    rawPath: false,
    bodyBytesMax: 1,
    timeouts: ROUTE_TIMEOUTS_DEFAULT,
    accessLog: false,
    cutFields: [],
    auth: { type: "none" },
  };
}

async function startFleet(context: TestContext, routes: RouteSpec[] = []) {
  const place = await probeListenAddress({ host: "127.0.0.1", port: 0 }, "--addr");
  const shared = allocateSharedBuffers(2);
  const lines: Record<string, unknown>[] = [];
  const retired: MetricBlock[] = [];
  const log = createLogger({
    service: "test",
    format: "json",
    write: (line) => void lines.push(JSON.parse(line)),
  });
  const fleet = new Fleet(
    {
      entry,
      places: [0, 1].map((workerIndex) => ({ workerIndex, listen: { ...place, reusePort: true } })),
      shared,
      log,
      silentMs: 400,
      stuckMs: 1500,
      startMs: 20_000,
      onRetired: (block) => void retired.push(block),
    },
    globals,
    routes,
  );
  context.after(() => fleet.end());
  const applied = (): string[] =>
    lines
      .filter((line) => line["msg"] === "applied")
      .map((line) => `${String(line["worker"])}:${String(line["seq"])}:${String(line["upsert"])}`);
  const waitForLive = async (count: number): Promise<void> => {
    for (let tries = 0; tries < 400; tries++) {
      if (fleet.countLive() === count) return;
      await delay(25);
    }
    assert.fail(`${fleet.countLive()} workers live instead of ${count}`);
  };
  return { fleet, place, shared, lines, applied, retired, waitForLive };
}

test("every worker starts with every route, and takes up changes under rising numbers", async (context) => {
  const { fleet, applied } = await startFleet(context, [makeRoute("/a")]);
  await fleet.start();
  assert.equal(fleet.countLive(), 2);
  await fleet.apply({ upsert: [makeRoute("/b")], remove: [] });
  await fleet.apply({ upsert: [], remove: [makeRouteKey(undefined, "/a")] });
  assert.deepEqual(applied().sort(), ["0:1:/a", "0:2:/b", "0:3:", "1:1:/a", "1:2:/b", "1:3:"]);
});

test("a worker that dies is replaced with the routes in force; its counts are cleared and its totals kept", async (context) => {
  const { fleet, applied, retired, shared, lines, waitForLive } = await startFleet(context);
  await fleet.start();
  await fleet.apply({ upsert: [makeRoute("/b"), makeRoute("/crash")], remove: [] });
  await waitForLive(2);
  assert.equal(new ActiveCounts(shared).sum(3), 0);
  assert.deepEqual(
    retired.map((block) => block.readCounter("requests")),
    [7, 7],
  );
  assert.ok(applied().includes("0:1:/b,/crash"), applied().join(" "));
  const told = lines.find((line) => line["msg"] === "a worker is gone and will be replaced");
  assert.match(String(told?.["reason"]), /crashed on purpose/);
});

test("a worker that does not answer a change is replaced, and the change is answered meanwhile", async (context) => {
  const { fleet, lines, waitForLive } = await startFleet(context);
  await fleet.start();
  await fleet.apply({ upsert: [makeRoute("/silent")], remove: [] });
  await waitForLive(2);
  const reasons = lines.flatMap((line) => (line["reason"] === undefined ? [] : [line["reason"]]));
  assert.deepEqual(
    reasons,
    Array.from({ length: 2 }, () => "it did not take up a change in time"),
  );
});

test("a worker that is stuck is replaced", async (context) => {
  const { fleet, retired, lines, waitForLive } = await startFleet(context);
  await fleet.start();
  await fleet.apply({ upsert: [makeRoute("/stuck")], remove: [] });
  for (let tries = 0; retired.length < 2 && tries < 200; tries++) await delay(25);
  await waitForLive(2);
  const reasons = lines.flatMap((line) => (line["reason"] === undefined ? [] : [line["reason"]]));
  assert.deepEqual(
    reasons,
    Array.from({ length: 2 }, () => "it shows no life"),
  );
});

test("a change that one worker refuses is taken back from the others, and the caller is told why", async (context) => {
  const { fleet, applied, waitForLive } = await startFleet(context, [makeRoute("/a")]);
  await fleet.start();
  await assert.rejects(
    fleet.apply({ upsert: [makeRoute("/refused")], remove: [makeRouteKey(undefined, "/a")] }),
    /a worker refused the change: refused on purpose/,
  );
  await fleet.apply({ upsert: [makeRoute("/b")], remove: [] });
  assert.deepEqual(applied().sort(), [
    "0:1:/a",
    "0:2:/refused",
    "0:3:/a",
    "0:4:/b",
    "1:1:/a",
    "1:3:/b",
  ]);
  await fleet.apply({ upsert: [makeRoute("/crash")], remove: [] });
  for (let tries = 0; fleet.countLive() > 0 && tries < 200; tries++) await delay(5);
  await waitForLive(2);
  assert.deepEqual(applied().slice(-2).sort(), ["0:1:/a,/b,/crash", "1:1:/a,/b,/crash"]);
});

test("a start that one worker refuses fails with its reason and leaves no thread behind", async (context) => {
  const { fleet } = await startFleet(context, [makeRoute("/refused")]);
  await assert.rejects(fleet.start(), /refused on purpose/);
  assert.equal(fleet.countLive(), 0);
});

test("a drain ends every worker and tells how many exchanges were cut", async (context) => {
  const { fleet } = await startFleet(context);
  await fleet.start();
  assert.equal(await fleet.drain(1000), 2);
  assert.equal(fleet.countLive(), 0);
});

test("a port that workers share already is found to be taken, and the option that changes it is named", async (context) => {
  const { fleet, place } = await startFleet(context);
  await fleet.start();
  await assert.rejects(
    probeListenAddress(place, "--addr"),
    new RegExp(`port ${place.port} is in use.*choose another with --addr`),
  );
});
