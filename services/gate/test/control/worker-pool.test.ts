// The pool with real threads: changes reach every worker, those that die or fall silent are replaced.
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { type TestContext, test } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { WorkerPool } from "../../src/worker/worker-pool.ts";
import { claimListenAddress } from "../../src/worker/listen-probe.ts";
import {
  ActiveCounts,
  type GlobalSpec,
  GUEST_LIMITS_DEFAULT,
  LIMITS_DEFAULT,
  type MetricBlock,
  ROUTE_TIMEOUTS_DEFAULT,
  type RouteSpec,
  allocateSharedBuffers,
  makeRouteKey,
} from "../../src/shared-state/index.ts";

const entry = new URL("../fixture/acking-worker.ts", import.meta.url);

const globals: GlobalSpec = {
  serviceVersion: "0",
  hasIndex: false,
  hasConsole: false,
  noRouteStatus: 502,
  trustedProxies: [],
  internalRoutes: [],
  control: { socketPath: "", secret: "" },
  limits: LIMITS_DEFAULT,
  guests: GUEST_LIMITS_DEFAULT,
};

function makeRoute(prefix: string): RouteSpec {
  return {
    key: makeRouteKey(undefined, prefix),
    prefix,
    slot: 0,
    metricsId: 1,
    targets: [{ url: "http://t", weight: 1, slot: 3, link: 0 }],
    balancer: "round_robin",
    stripPrefix: false,
    hostHeader: "client",
    rawPath: false,
    bodyBytesMax: 1,
    timeouts: ROUTE_TIMEOUTS_DEFAULT,
    accessLog: false,
    cutFields: [],
    steps: {},
    auth: { type: "none" },
  };
}

async function startPool(context: TestContext, routes: RouteSpec[] = []) {
  const { address: place, release } = await claimListenAddress(
    { host: "127.0.0.1", port: 0 },
    "--addr",
  );
  context.after(release);
  const shared = allocateSharedBuffers(2);
  const lines: Record<string, unknown>[] = [];
  const retired: MetricBlock[] = [];
  const log = createLogger({
    service: "test",
    format: "json",
    write: (line) => void lines.push(JSON.parse(line)),
  });
  const pool = new WorkerPool(
    {
      entry,
      places: [0, 1].map((workerIndex) => ({ workerIndex, listen: { ...place, reusePort: true } })),
      shared,
      log,
      silentMs: 400,
      stuckMs: 1500,
      startMs: 20_000,
    },
    globals,
    routes,
  );
  context.after(() => pool.end());
  const applied = (): string[] =>
    lines
      .filter((line) => line["msg"] === "applied")
      .map((line) => `${String(line["worker"])}:${String(line["seq"])}:${String(line["upsert"])}`);
  const waitForLive = async (count: number): Promise<void> => {
    for (let tries = 0; tries < 400; tries++) {
      if (pool.countLive() === count) return;
      await delay(25);
    }
    assert.fail(`${pool.countLive()} workers live instead of ${count}`);
  };
  const sources = {
    onRetired: (block: MetricBlock) => void retired.push(block),
    openLedger: () => ({ folder: "/nonexistent", instance: "1-1-1", gateway: "gate" }),
  };
  return { pool, sources, place, shared, lines, applied, retired, waitForLive };
}

test("every worker starts with all routes, and applies numbered changes", async (context) => {
  const { pool, sources, applied } = await startPool(context, [makeRoute("/a")]);
  await pool.start(sources);
  assert.equal(pool.countLive(), 2);
  await pool.apply({ upsert: [makeRoute("/b")], remove: [] });
  await pool.apply({ upsert: [], remove: [makeRouteKey(undefined, "/a")] });
  assert.deepEqual(applied().sort(), ["0:1:/a", "0:2:/b", "0:3:", "1:1:/a", "1:2:/b", "1:3:"]);
});

test("a worker that ends is replaced with the active routes; its counts are cleared and its totals kept", async (context) => {
  const { pool, sources, applied, retired, shared, lines, waitForLive } = await startPool(context);
  await pool.start(sources);
  await pool.apply({ upsert: [makeRoute("/b"), makeRoute("/crash")], remove: [] });
  await waitForLive(2);
  assert.equal(new ActiveCounts(shared).sum(3), 0);
  assert.deepEqual(
    retired.map((block) => block.readCounter("requests")),
    [7, 7],
  );
  assert.ok(applied().includes("0:1:/b,/crash"), applied().join(" "));
  const told = lines.find((line) => line["msg"] === "worker ended and will be replaced");
  assert.match(String(told?.["reason"]), /crashed on purpose/);
});

test("a worker that does not acknowledge a change is replaced, and the change succeeds", async (context) => {
  const { pool, sources, lines, waitForLive } = await startPool(context);
  await pool.start(sources);
  await pool.apply({ upsert: [makeRoute("/silent")], remove: [] });
  await waitForLive(2);
  const reasons = lines.flatMap((line) => (line["reason"] === undefined ? [] : [line["reason"]]));
  assert.deepEqual(
    reasons,
    Array.from({ length: 2 }, () => "it did not apply a change in time"),
  );
});

test("a worker that is stuck is replaced", async (context) => {
  const { pool, sources, retired, lines, waitForLive } = await startPool(context);
  await pool.start(sources);
  await pool.apply({ upsert: [makeRoute("/stuck")], remove: [] });
  for (let tries = 0; retired.length < 2 && tries < 1_000; tries++) await delay(25);
  await waitForLive(2);
  const reasons = lines.flatMap((line) => (line["reason"] === undefined ? [] : [line["reason"]]));
  assert.deepEqual(
    reasons,
    Array.from({ length: 2 }, () => "it does not respond"),
  );
});

test("a change that one worker refuses is reverted in the others, and the caller receives the reason", async (context) => {
  const { pool, sources, applied, waitForLive } = await startPool(context, [makeRoute("/a")]);
  await pool.start(sources);
  await assert.rejects(
    pool.apply({ upsert: [makeRoute("/refused")], remove: [makeRouteKey(undefined, "/a")] }),
    /a worker refused the change: refused on purpose/,
  );
  await pool.apply({ upsert: [makeRoute("/b")], remove: [] });
  assert.deepEqual(applied().sort(), [
    "0:1:/a",
    "0:2:/refused",
    "0:3:/a",
    "0:4:/b",
    "1:1:/a",
    "1:3:/b",
  ]);
  await pool.apply({ upsert: [makeRoute("/crash")], remove: [] });
  for (let tries = 0; pool.countLive() > 0 && tries < 4_000; tries++) await delay(5);
  await waitForLive(2);
  assert.deepEqual(applied().slice(-2).sort(), ["0:1:/a,/b,/crash", "1:1:/a,/b,/crash"]);
});

test("a start that one worker refuses fails with its reason and leaves no thread behind", async (context) => {
  const { pool, sources } = await startPool(context, [makeRoute("/refused")]);
  await assert.rejects(pool.start(sources), /refused on purpose/);
  assert.equal(pool.countLive(), 0);
});

test("a drain ends every worker and returns the number of cut exchanges", async (context) => {
  const { pool, sources } = await startPool(context);
  await pool.start(sources);
  assert.equal(await pool.drain(1000), 2);
  assert.equal(pool.countLive(), 0);
});

test("a port that workers already share is reported as in use, with the option that changes it", async (context) => {
  const { pool, sources, place } = await startPool(context);
  await pool.start(sources);
  await assert.rejects(
    claimListenAddress(place, "--addr"),
    new RegExp(`port ${place.port} is in use.*choose another with --addr`),
  );
});

test(
  "of gateways that start on one port at the same moment, one gets it",
  { skip: process.platform === "linux" ? false : "needs abstract sockets" },
  async (context) => {
    const free = await claimListenAddress({ host: "127.0.0.1", port: 0 }, "--addr");
    free.release();
    const starts = await Promise.allSettled(
      Array.from({ length: 3 }, () => claimListenAddress(free.address, "--addr")),
    );
    const claims = starts.filter((start) => start.status === "fulfilled");
    for (const { value } of claims) context.after(value.release);
    assert.equal(claims.length, 1);
    claims[0]?.value.release();
    const next = await claimListenAddress(free.address, "--addr");
    context.after(next.release);
  },
);
