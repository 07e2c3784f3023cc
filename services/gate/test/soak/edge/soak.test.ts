// Requests over TLS while certificates of a minute are renewed and all sources change, break and die: each failure has a cause,
// and nothing leaks. Only a long form: PLATFORM_EDGE_SOAK_SECONDS=1200.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "@platform/kernel/testing";
import { pebbleSkip, startPebble } from "@platform/testing/pebble";
import { makeFolder, runtimes, startGate } from "../../fixture/gate-process.ts";
import { readMetric } from "../../fixture/metrics.ts";
import { serve } from "../../fixture/serve.ts";
import { openSources, sourcesSkip } from "../../fixture/sources.ts";
import { createHeapProbe } from "../heap-samples.ts";
import { measureGrowth, type Sample, sampleProcess } from "../resources.ts";
import { waits } from "../scene.ts";
import { Outages, Tally } from "../tally.ts";
import {
  FlapCounts,
  flapAddresses,
  flapBucket,
  flapRepository,
  flapSecrets,
  killInTurn,
} from "./flapping.ts";
import { ACME_NAMES, keepAsking, listAsks, type LoadOptions, SECRET_NAME } from "./load.ts";

const SECONDS = Number(process.env["PLATFORM_EDGE_SOAK_SECONDS"] ?? 0);
const LIFE_SECONDS = 60;
/** The gateway changes a route at most once a second; a machine may be slow. */
const GRACE_MS = 10_000;
const WARM_UP_SHARE = 0.25;
const GROWTH_MIB_PER_MINUTE_MAX = 0.25;
const OPEN_FILES_SLACK = 20;
const peersSkip = pebbleSkip === false ? sourcesSkip : pebbleSkip;
const skip = SECONDS > 0 ? peersSkip : "PLATFORM_EDGE_SOAK_SECONDS is not set";

async function startUpstream(context: TestContext): Promise<string> {
  const server = createServer((_request, response) => response.end("served"));
  // A connection that the upstream closed while it was idle could fail a request.
  server.keepAliveTimeout = 3_600_000;
  return serve(context, server);
}

/** The routes of the bucket: every second document has one more, which must not disturb the others. */
function describeRoutes(stable: string) {
  const routes = [
    { prefix: "/stable", target: stable },
    { prefix: "/service", target: "service://orders" },
  ];
  const toggled = { prefix: "/toggled", target: stable };
  return (turn: number) => ({ routes: turn % 2 === 0 ? routes : [...routes, toggled] });
}

async function prepare(context: TestContext) {
  const root = makeFolder(context);
  const [port, plainPort] = [await findFreePort(), await findFreePort()];
  const places = { folder: root, tlsPort: port, httpPort: plainPort };
  const pebble = await startPebble({ ...places, lifeSeconds: LIFE_SECONDS });
  context.after(() => pebble.stop());
  const [one, two, stable] = [
    await startUpstream(context),
    await startUpstream(context),
    await startUpstream(context),
  ];
  const config = {
    addr: `127.0.0.1:${port}`,
    http_addr: `127.0.0.1:${plainPort}`,
    workers: 2,
    auto_tls: true,
    auto_tls_domain: ACME_NAMES,
    acme_directory_url: pebble.directoryUrl,
    acme_ca: pebble.caPath,
    local_addr: "127.0.0.1:0",
    no_route_status: 502,
  };
  const describe = describeRoutes(stable);
  const sources = await openSources(context, root, {
    remote: describe(0),
    urls: [one, two],
    config,
  });
  sources.writeCertificate("turn-0", SECRET_NAME);
  const probe = createHeapProbe(makeFolder(context), SECONDS);
  const { folder, env } = sources;
  const gate = await startGate(context, {
    runtime: runtimes[0]!,
    folder,
    env: { ...env, ...probe.env },
  });
  for (const name of ACME_NAMES) {
    await gate.waitForLine((line) => line.msg === "certificate obtained" && line["name"] === name);
  }
  const local = `http://127.0.0.1:${gate.ports["local"]}`;
  return { root, pebble, gate, local, sources, describe, config, probe, urls: [one, two] as const };
}

const listSeen = (serials: LoadOptions["serials"]): string[] =>
  [...serials].map(([name, { size }]) => `${name}: ${size}`);

/** Addresses of the service that the gateway has. */
async function countAddresses(local: string): Promise<number> {
  const answer = await fetch(`${local}/api/v1/admin/sources`);
  const { items } = (await answer.json()) as { items: { kind: string; version: string }[] };
  const { version = "" } = items.find(({ kind }) => kind === "discovery") ?? {};
  return Number(/orders:(\d+)/.exec(version)?.[1] ?? 0);
}

type Stage = Awaited<ReturnType<typeof prepare>>;

/** Runs load and faults for the time. */
async function run(stage: Stage, empty: Outages) {
  const { root, pebble, gate, local, sources, describe, config, urls } = stage;
  const end = new AbortController();
  const over = end.signal;
  const counts = new FlapCounts();
  const samples: Sample[] = [];
  const serials = new Map([...ACME_NAMES, SECRET_NAME].map((name) => [name, new Set<string>()]));
  const load: LoadOptions = {
    port: gate.port,
    ca: await pebble.readRoot(),
    tally: new Tally(),
    over,
    logPath: process.env["PLATFORM_EDGE_SOAK_LOG"] ?? join(root, "load.jsonl"),
    serials,
  };
  const watch = async (): Promise<void> => {
    while (await waits((SECONDS * 1_000) / 120, over)) samples.push(sampleProcess(gate.pid));
  };
  const flapping = { sources, counts, over };
  const clients = listAsks(empty).map((ask) => keepAsking(load, ask));
  const faults = Promise.all([
    flapAddresses(flapping, urls, { empty, countAddresses: () => countAddresses(local) }),
    flapBucket(flapping, describe),
    flapSecrets(flapping),
    flapRepository(flapping, `${local}/api/v1/gitops/webhook`, config),
    killInTurn(flapping),
    watch(),
  ]);
  const ended = gate.ended.then(({ stderr }) => assert.fail(`it ended: ${stderr}`));
  const lasts = sleep(SECONDS * 1_000, undefined, { signal: over }).catch(() => undefined);
  await Promise.race([lasts, faults, ended]).finally(() => end.abort());
  await Promise.race([Promise.all([faults, ...clients]), ended]);
  return { counts, samples, serials, tally: load.tally };
}

test(
  "certificates are renewed and sources flap under load: each failure has a cause",
  { skip, timeout: SECONDS * 1_000 + 300_000 },
  async (context) => {
    const stage = await prepare(context);
    const empty = new Outages(GRACE_MS);
    const { counts, samples, serials, tally } = await run(stage, empty);
    const settled = samples.slice(Math.floor(samples.length * WARM_UP_SHARE));
    const [first, last] = [settled[0]!, settled.at(-1)!];
    const heaps = stage.probe.read(WARM_UP_SHARE);
    const growth = heaps.reduce((sum, points) => sum + measureGrowth(points), 0);
    const memory = heaps.map((points) =>
      [points[0], points.at(-1)].map((point) => point?.mib.toFixed(1)),
    );
    const seen = listSeen(serials);
    // Of a machine that does much else, requests and renewals are slower.
    const load = { average: loadavg().map(Math.round), processors: availableParallelism() };
    context.diagnostic(JSON.stringify({ counts, seen, growth, memory, first, last, tally, load }));
    assert.deepEqual(tally.unexpected, []);
    assert.equal(await readMetric(stage.local, "platform_gate_workers_replaced_total"), 0);
    const log = stage.gate.lines().filter(({ msg }) => msg === "cannot obtain a certificate");
    assert.deepEqual(log, []);
    for (const name of Object.keys(stage.sources.mortal)) {
      assert.ok((counts.deaths[name] ?? 0) > 0, name);
    }
    for (const status of ["200", "400"]) assert.ok((counts.pulls[status] ?? 0) > 0, status);
    assert.ok(
      last.openFiles <= first.openFiles + OPEN_FILES_SLACK,
      JSON.stringify({ first, last }),
    );
    assert.ok(growth <= GROWTH_MIB_PER_MINUTE_MAX, `${growth} MiB per minute`);
    // Each minute has two renewals, of a busy machine at least one.
    for (const { size } of serials.values()) {
      assert.ok(size >= SECONDS / LIFE_SECONDS, seen.join());
    }
  },
);
