// Guarded routes under load while upstreams die, Redis restarts, signing keys rotate and the configuration is reloaded
// each second: errors only where they belong, no crash, no leak. PLATFORM_GATE_SOAK_SECONDS=1200 is the long form.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "@platform/kernel/testing";
import { WebSocket } from "ws";
import { makeFolder, type Runtime, runtimes, startGate } from "../fixture/gate-process.ts";
import { readMetric } from "../fixture/metrics.ts";
import { type OidcIssuer, startIssuer } from "../fixture/oidc-issuer.ts";
import { findRedisSkip, killRedis, startRedis } from "@platform/redis/testing";
import { findFloors, measureGrowth, type Sample, sampleProcess } from "./resources.ts";
import { type Expectation, Outages, Tally } from "./tally.ts";
import { MortalUpstream } from "./upstream.ts";

const longSeconds = Number(process.env["PLATFORM_GATE_SOAK_SECONDS"] ?? 0);
const SECONDS = longSeconds || 15;
const RELOAD_EVERY_MS = 1_000;
/** One reload in so many is refused, one in so many comes by signal. */
const BROKEN_EVERY = 5;
const SIGNAL_EVERY = 3;
/** Longer than the gateway waits between two requests for keys (10 s). */
const KEY_ANNOUNCED_MS = 12_500;
const KEY_SETTLED_MS = 5_000;
const OUTAGE_MS = 1_000;
const GRACE_MS = 3_000;
const PAUSE_MS = 20;
const CLIENTS = 2;
const CACHED_PATHS = 40;
const STREAMS = 8;
const LIMIT_RPM = 60;
const WARM_UP_SHARE = 0.25;
const PERIODS = 8;
const GROWTH_MIB_PER_MINUTE_MAX = 1;
const OPEN_FILES_SLACK = 40;

/** Everything that takes part. */
interface Scene {
  port: number;
  url: string;
  tally: Tally;
  over: AbortSignal;
}

interface Ask {
  route: string;
  path?: () => string;
  method?: string;
  body?: string;
  headers?: () => Record<string, string>;
  expected: Expectation;
}

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

/** The requests, and what may come of them. */
function listAsks(issuer: OidcIssuer, outages: Record<"pair" | "single", Outages>): readonly Ask[] {
  let sent = 0;
  const user = () => ({ sub: "ada", exp: Math.floor(Date.now() / 1_000) + 60 });
  const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
  const onlyWhileDead = {
    always: ["200"],
    duringOutage: ["502", "503", "cut"],
    outages: outages.single,
  };
  const cutOnly = { always: ["200"], duringOutage: ["cut"], outages: outages.pair };
  const refused = { always: ["401"] };
  const wrong = [
    () => issuer.sign({ ...user(), exp: 1_000 }),
    () => issuer.sign(user(), { kid: "unknown" }),
    () => issuer.sign(user(), { alg: "none" }),
    () => `${issuer.sign(user()).slice(0, -8)}AAAAAAAA`,
  ];
  return [
    { route: "pair", expected: { always: ["200"] } },
    { route: "pair", path: () => "/slow", expected: { always: ["200"] } },
    { route: "pair", path: () => "/stream", expected: cutOnly },
    { route: "single", expected: onlyWhileDead },
    {
      route: "cache",
      path: () => `/cached/${sent++ % CACHED_PATHS}`,
      expected: { always: ["200"] },
    },
    {
      route: "token",
      headers: () => bearer(issuer.sign(user())),
      expected: { always: ["200"] },
    },
    { route: "token", headers: () => bearer(wrong[sent++ % wrong.length]!()), expected: refused },
    { route: "limited", expected: { always: ["200", "429"] } },
    { route: "toggled", expected: { always: ["200", "502"] } },
    { route: "stable", method: "POST", body: "content", expected: { always: ["200"] } },
  ];
}

/** One request; its status, or `cut` if its response is not whole. */
async function send(port: number, agent: Agent, ask: Ask): Promise<string> {
  const { route, path, method = "GET", body, headers } = ask;
  const sent = request({
    host: "127.0.0.1",
    port,
    path: `/${route}${path?.() ?? "/plain"}`,
    method,
    agent,
    headers: { ...headers?.(), ...(body === undefined ? {} : { "Content-Length": body.length }) },
  }).end(body);
  try {
    const [response] = await once(sent, "response");
    let bytes = 0;
    for await (const piece of response) bytes += (piece as Buffer).length;
    const isWhole = response.statusCode !== 200 || body === undefined || bytes === body.length;
    return isWhole ? String(response.statusCode) : "cut";
  } catch {
    return "cut";
  }
}

async function keepAsking({ port, tally, over }: Scene, ask: Ask): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  while (!over.aborted) {
    const beganMs = performance.now();
    const cause = await send(port, agent, ask);
    tally.add(ask.route, cause, ask.expected, beganMs);
    await sleep(PAUSE_MS);
  }
  agent.destroy();
}

/** Clients that disconnect in the middle of a response. */
async function keepLeaving({ port, tally, over }: Scene): Promise<void> {
  while (!over.aborted) {
    const sent = request({ host: "127.0.0.1", port, path: "/stable/stream", agent: false }).end();
    sent.on("error", () => undefined);
    await Promise.race([once(sent, "response"), once(sent, "close")]).catch(() => undefined);
    sent.destroy();
    tally.add("stable", "left", { always: ["left"] }, performance.now());
    await sleep(PAUSE_MS * 2);
  }
}

/** A WebSocket and an event stream, which no reload may end. */
async function holdStream({ port, url, tally, over }: Scene): Promise<void> {
  const fail = (what: string) => () => {
    if (!over.aborted) tally.add("stable", what, { always: [] }, performance.now());
  };
  const socket = new WebSocket(`${url.replace("http", "ws")}/stable/socket`);
  socket.on("close", fail("socket closed")).on("error", fail("socket failed"));
  await once(socket, "open");
  const events = request({ host: "127.0.0.1", port, path: "/stable/events", agent: false }).end();
  events.on("error", fail("events failed"));
  const [response] = await once(events, "response");
  response.on("data", () => tally.add("stable", "event", { always: ["event"] }, 0));
  response.on("close", fail("events closed"));
  socket.on("message", () => tally.add("stable", "message", { always: ["message"] }, 0));
  while (await waits(PAUSE_MS * 10, over)) {
    socket.send("hello");
    tally.add("stable", "sent", { always: ["sent"] }, 0);
  }
  events.destroy();
  socket.terminate();
}

/** Kills the upstreams in turn and starts them again. */
async function killInTurn(
  upstreams: readonly MortalUpstream[],
  outages: Outages,
  everyMs: number,
  over: AbortSignal,
): Promise<void> {
  for (let turn = 0; await waits(everyMs, over); turn++) {
    const victim = upstreams[turn % upstreams.length]!;
    outages.begin();
    await victim.kill();
    await sleep(OUTAGE_MS);
    await victim.revive();
    outages.end();
  }
}

/** Announces keys, uses them later, and keeps the previous one: as providers do. They are down at times, too. */
async function rotateKeys(issuer: OidcIssuer, over: AbortSignal): Promise<number> {
  let rotations = 0;
  issuer.announceKey();
  while (await waits(KEY_ANNOUNCED_MS, over)) {
    issuer.rotate(1);
    rotations++;
    // A gateway that was too busy to read the announced key needs the provider now.
    if (!(await waits(KEY_SETTLED_MS, over))) break;
    const { port } = issuer;
    await issuer.stop();
    await sleep(OUTAGE_MS);
    await issuer.listen(port);
    issuer.announceKey();
  }
  return rotations;
}

/** Changes the configuration and reloads it each second; some changes are invalid. */
async function keepReloading(
  scene: Scene,
  path: string,
  describe: (turn: number) => object,
  signal: () => void,
): Promise<{ applied: number; refused: number; signals: number }> {
  const counts = { applied: 0, refused: 0, signals: 0 };
  for (let turn = 1; await waits(RELOAD_EVERY_MS, scene.over); turn++) {
    const isBroken = turn % BROKEN_EVERY === 0;
    writeFileSync(path, isBroken ? '{"routes": [{"prefix": ' : JSON.stringify(describe(turn)));
    if (turn % SIGNAL_EVERY === 0) {
      signal();
      counts.signals++;
      continue;
    }
    const { status } = await fetch(`${scene.url}/api/v1/admin/reload`, { method: "POST" });
    assert.equal(status, isBroken ? 400 : 200);
    if (isBroken) counts.refused++;
    else counts.applied++;
  }
  return counts;
}

/** True after the time, false once the test is over. */
async function waits(ms: number, over: AbortSignal): Promise<boolean> {
  await sleep(ms, undefined, { signal: over }).catch(() => undefined);
  return !over.aborted;
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
  let redis = await startRedis(context, await findFreePort());
  const describe = describeGate(upstreams, `${issuer.url}/jwks`, redis.url);
  const folder = makeFolder(context);
  const gate = await startGate(context, { runtime, folder, config: describe(0) });
  const end = new AbortController();
  const tally = new Tally();
  const scene: Scene = { ...gate, tally, over: end.signal };
  const asks = listAsks(issuer, outages);
  const agent = new Agent({ keepAlive: true });
  context.after(() => agent.destroy());
  const cached = asks.find(({ route }) => route === "cache")!;
  for (let at = 0; at < CACHED_PATHS; at++) {
    assert.equal(await send(gate.port, agent, cached), "200");
  }

  const restartRedis = async (): Promise<number> => {
    let restarts = 0;
    while (await waits(5_000, end.signal)) {
      await killRedis(redis);
      await sleep(OUTAGE_MS);
      redis = await startRedis(context, redis.port);
      restarts++;
    }
    return restarts;
  };
  const samples: Sample[] = [];
  const watchResources = async (): Promise<void> => {
    while (await waits((SECONDS * 1_000) / 120, end.signal)) samples.push(sampleProcess(gate.pid));
  };
  const load = [
    ...asks.flatMap((ask) => Array.from({ length: CLIENTS }, () => keepAsking(scene, ask))),
    ...Array.from({ length: STREAMS }, () => holdStream(scene)),
    keepLeaving(scene),
  ];
  const faults = Promise.all([
    restartRedis(),
    rotateKeys(issuer, end.signal),
    keepReloading(scene, join(folder, "gate.json"), describe, () => gate.signal("SIGHUP")),
    killInTurn(upstreams.pair, outages.pair, 2_000, end.signal),
    killInTurn(upstreams.single, outages.single, longSeconds > 0 ? 10_000 : 4_000, end.signal),
    watchResources(),
  ]);
  const timer = setTimeout(() => end.abort(), SECONDS * 1_000);
  await Promise.race([faults, gate.ended.then(({ stderr }) => assert.fail(`it ended: ${stderr}`))]);
  clearTimeout(timer);
  await Promise.all(load);

  const [redisRestarts, rotations, reloads] = await faults;
  const settled = samples.slice(Math.floor(samples.length * WARM_UP_SHARE));
  const floors = findFloors(settled, PERIODS);
  const growth = measureGrowth(floors);
  const memory = floors.map(({ rssMib }) => Math.round(rssMib));
  const kills = { pair: outages.pair.count, single: outages.single.count };
  const [first, last] = [settled[0]!, settled.at(-1)!];
  context.diagnostic(
    JSON.stringify({
      kills,
      redisRestarts,
      rotations,
      reloads,
      growth,
      memory,
      first,
      last,
      tally,
    }),
  );
  assert.deepEqual(tally.unexpected, []);
  for (const fault of [...Object.values(kills), redisRestarts, rotations, reloads.refused])
    assert.ok(fault > 0);
  // A Redis that restarts has lost its counts; the gateway's own apply in the meantime.
  const windows = redisRestarts + 2 + Math.floor(SECONDS / 60);
  assert.ok(tally.counts["limited 200"]! <= LIMIT_RPM * windows, "too many requests were admitted");
  assert.ok(tally.counts["stable message"]! >= tally.counts["stable sent"]! - STREAMS * 5);
  for (const cause of ["limited 429", "single 502", "token 401", "stable event"])
    assert.ok(tally.counts[cause]! > 0, cause);
  assert.equal(await readMetric(gate.url, "platform_gate_workers_replaced_total"), 0);
  assert.ok(last.openFiles <= first.openFiles + OPEN_FILES_SLACK, JSON.stringify({ first, last }));
  if (longSeconds > 0) assert.ok(growth <= GROWTH_MIB_PER_MINUTE_MAX, `${growth} MiB per minute`);
}

for (const runtime of runtimes) {
  test(
    `through ${SECONDS} s of faults only the requests fail that must (${runtime.name})`,
    { skip: findRedisSkip(), timeout: SECONDS * 1_000 + 240_000 },
    (context) => soak(context, runtime),
  );
}
