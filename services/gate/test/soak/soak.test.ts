// Guarded routes under load while upstreams die, Redis restarts, signing keys rotate and the configuration is reloaded
// each second: errors only where they belong, no crash, no leak. PLATFORM_GATE_SOAK_SECONDS=1200 is the long form.
import assert from "node:assert/strict";
import { Agent } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "@platform/kernel/testing";
import { findRedisSkip, startRedis } from "@platform/redis/testing";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, type Runtime, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { readMetric } from "../fixture/metrics.ts";
import { startIssuer } from "../fixture/oidc-issuer.ts";
import { FaultCounts, keepReloading, keepRestarting, killInTurn, rotateKeys } from "./faults.ts";
import { createHeapProbe } from "./heap-samples.ts";
import { CACHED_PATHS, holdStream, keepAsking, keepLeaving, listAsks, send } from "./load.ts";
import { findFloors, measureGrowth, type Sample, sampleProcess } from "./resources.ts";
import { type Scene, waits } from "./scene.ts";
import { Outages, Tally } from "./tally.ts";
import { MortalUpstream } from "./upstream.ts";

const longSeconds = Number(process.env["PLATFORM_GATE_SOAK_SECONDS"] ?? 0);
const SECONDS = longSeconds || 8;
const GRACE_MS = 3_000;
const CLIENTS = 2;
const STREAMS = 8;
const LIMIT_RPM = 60;
const WARM_UP_SHARE = 0.25;
const PERIODS = 8;
const GROWTH_MIB_PER_MINUTE_MAX = { node: 0.25, bun: 1 };
const OPEN_FILES_SLACK = 40;
/** Longest wait, after the time of the test, for faults that it has not seen yet. */
const FAULTS_MS_MAX = 180_000;
/** Outcomes that the faults and limits must have caused. */
const CAUSES = ["limited 429", "single 502", "token 401", "stable event"];

/** The configuration; every second one has one more route, which must not disturb the others. */
function describeGate(
  { pair, single, stable }: Record<"pair" | "single" | "stable", readonly MortalUpstream[]>,
  jwksUrl: string,
  redisUrl: string,
) {
  const auth = { type: "bearer", jwks_url: jwksUrl };
  const brief = { open_ms: 300, max_open_ms: 1_000 };
  const [target] = stable.map(({ url }) => url);
  const [mortal] = single.map(({ url }) => url);
  const routes = [
    { prefix: "/pair", targets: pair.map(({ url }) => url), access_log: true },
    { prefix: "/single", target: mortal, circuit_breaker: brief },
    { prefix: "/cache", target: mortal, cache_ttl_seconds: 60, circuit_breaker: brief },
    { prefix: "/token", target, auth, rate_limit_rpm: 100_000, access_log: true },
    { prefix: "/limited", target, rate_limit_rpm: LIMIT_RPM },
    { prefix: "/stable", target },
  ];
  return (turn: number) => ({
    addr: "127.0.0.1:0",
    workers: 2,
    limits_redis_url: redisUrl,
    routes: turn % 2 === 0 ? routes : [...routes, { prefix: "/toggled", target }],
  });
}

async function soak(context: TestContext, runtime: Runtime): Promise<void> {
  const start = () => MortalUpstream.start(context);
  const upstreams = {
    pair: [await start(), await start()],
    single: [await start()],
    stable: [await start()],
  };
  const outages = { pair: new Outages(GRACE_MS), single: new Outages(GRACE_MS) };
  const issuer = await startIssuer(context);
  const redis = await startRedis(context, await findFreePort());
  const describe = describeGate(upstreams, `${issuer.url}/jwks`, redis.url);
  const folder = makeFolder(context);
  const probe = runtime.name === "node" ? createHeapProbe(makeFolder(context), SECONDS) : undefined;
  const env = probe?.env ?? {};
  const gate = await startGate(context, { runtime, folder, config: describe(0), env });
  const end = new AbortController();
  // A test that is out of time stops its clients, too.
  context.signal.addEventListener("abort", () => end.abort());
  const tally = new Tally();
  const scene: Scene = { ...gate, tally, over: end.signal };
  const asks = listAsks(issuer, outages);
  const agent = new Agent({ keepAlive: true });
  context.after(() => agent.destroy());
  const cached = asks.find(({ route }) => route === "cache")!;
  for (let at = 0; at < CACHED_PATHS; at++) {
    assert.equal(await send(gate.port, agent, cached), "200");
  }

  const counts = new FaultCounts();
  const samples: Sample[] = [];
  const watchResources = async (): Promise<void> => {
    while (await waits((SECONDS * 1_000) / 120, end.signal)) samples.push(sampleProcess(gate.pid));
  };
  const beganMs = performance.now();
  const load = [
    ...asks.flatMap((ask) => Array.from({ length: CLIENTS }, () => keepAsking(scene, ask))),
    ...Array.from({ length: STREAMS }, () => holdStream(scene)),
    keepLeaving(scene),
  ];
  const faults = Promise.all([
    keepRestarting(context, redis, counts, end.signal),
    rotateKeys(issuer, counts, end.signal),
    keepReloading(scene, join(folder, "gate.json"), describe, () => gate.signal("SIGHUP"), counts),
    killInTurn(upstreams.pair, outages.pair, 2_000, end.signal),
    killInTurn(upstreams.single, outages.single, longSeconds > 0 ? 10_000 : 4_000, end.signal),
    watchResources(),
  ]);
  // A busy machine needs longer for the same faults.
  const isEnough = (): boolean =>
    [outages.pair.count, outages.single.count, counts.redisRestarts, counts.rotations].every(
      (count) => count > 0,
    ) &&
    counts.reloads.refused > 0 &&
    CAUSES.every((cause) => tally.counts[cause]! > 0);
  const ended = gate.ended.then(({ stderr }) => assert.fail(`it ended: ${stderr}`));
  const lasts = sleep(SECONDS * 1_000).then(() => waitFor(isEnough, "all faults", FAULTS_MS_MAX));
  await Promise.race([lasts, faults, ended]).finally(() => end.abort());
  await Promise.race([Promise.all([faults, ...load]), ended]);

  const settled = samples.slice(Math.floor(samples.length * WARM_UP_SHARE));
  const floors = findFloors(settled, PERIODS);
  // Of Node, what is left after collections; Bun cannot be asked, and its process grows and shrinks with its collector.
  const heaps = probe?.read(WARM_UP_SHARE) ?? [
    floors.map(({ atMs, rssMib }) => ({ atMs, mib: rssMib })),
  ];
  const growth = heaps.reduce((sum, points) => sum + measureGrowth(points), 0);
  const memory = heaps.map((points) =>
    [points[0], points.at(-1)].map((point) => point?.mib.toFixed(1)),
  );
  const kills = { pair: outages.pair.count, single: outages.single.count };
  const [first, last] = [settled[0]!, settled.at(-1)!];
  context.diagnostic(
    JSON.stringify({
      kills,
      counts,
      growth,
      memory,
      first,
      last,
      tally,
    }),
  );
  assert.deepEqual(tally.unexpected, []);
  // A Redis that restarts has lost its counts; the gateway's own apply in the meantime.
  const windows = counts.redisRestarts + 2 + Math.floor((performance.now() - beganMs) / 60_000);
  assert.ok(tally.counts["limited 200"]! <= LIMIT_RPM * windows, "too many requests were admitted");
  assert.equal(tally.counts["stable message"], tally.counts["stable sent"]);
  assert.equal(await readMetric(gate.url, "platform_gate_workers_replaced_total"), 0);
  assert.ok(last.openFiles <= first.openFiles + OPEN_FILES_SLACK, JSON.stringify({ first, last }));
  if (longSeconds > 0)
    assert.ok(growth <= GROWTH_MIB_PER_MINUTE_MAX[runtime.name], `${growth} MiB per minute`);
}

for (const runtime of runtimesOfRules) {
  test(
    `through ${SECONDS} s of faults only the requests fail that must (${runtime.name})`,
    { skip: findRedisSkip(), timeout: SECONDS * 1_000 + 240_000 },
    (context) => soak(context, runtime),
  );
}
