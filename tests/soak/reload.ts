// Reloads under load: other routes are added, changed and removed; a busy route must not be affected.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { startEventStreams, startRequests, startWebSockets } from "../stage/load.ts";
import { findProgram, runProgram } from "../stage/program.ts";
import { Stage, type RouteDocument, type StagedGateway } from "../stage/stage.ts";

const CLIENTS = 16;
const WEB_SOCKETS = 20;
const EVENT_STREAMS = 20;
const MESSAGE_MS = 50;
/** On a busy machine these take longer than the time. */
const ROUNDS_MIN = 2;

/** Result of a run. */
export interface ReloadFigures {
  requests: number;
  /** Concurrent requests of wrk; undefined if not installed. */
  wrkRequests: number | undefined;
  messages: number;
  events: number;
  fileReloads: number;
  apiChanges: number;
}

/**
 * Keeps WebSockets and event streams open on one route and sends requests while the file changes with SIGHUP and the
 * API creates and removes other routes, each change after the previous one has taken effect. Throws if a request fails
 * or a stream has a gap.
 */
export async function soakReload(
  seconds: number,
  env: Record<string, string> = {},
): Promise<ReloadFigures> {
  await using stage = new Stage();
  const upstream = await stage.startUpstream("steady");
  const steady: RouteDocument = { prefix: "/steady", target: upstream.url };
  const gateway = await stage.startGateway([steady], { workers: 2 }, env);

  const loads = [
    startRequests(gateway.url, "/steady/short", CLIENTS),
    await startWebSockets(`${gateway.url}/steady/socket`, WEB_SOCKETS, MESSAGE_MS),
    await startEventStreams(`${gateway.url}/steady/events?ms=${MESSAGE_MS}`, EVENT_STREAMS),
  ];
  const wrk = runWrk(`${gateway.url}/steady/short`, seconds);
  const deadline = Date.now() + seconds * 1000;
  let round = 0;
  while (Date.now() < deadline || round < ROUNDS_MIN) {
    round += 1;
    const target = `${upstream.url}/round-${round}`;
    gateway.writeRoutes([steady, { prefix: "/from-file", target }]);
    gateway.process.kill("SIGHUP");
    await awaitEffect(gateway, "/from-file/echo", `/round-${round}/from-file/echo`);
    await upsertRoute(gateway, { prefix: "/from-api", target });
    await expectUrl(gateway, "/from-api/echo", `/round-${round}/from-api/echo`);
    if (round % 2 === 0) await removeRoute(gateway, "/from-api");
    await sleep(100);
  }
  const wrkRequests = await wrk;
  const tallies = await Promise.all(loads.map((load) => load.stop()));
  for (const tally of tallies) assert.deepEqual(tally.failures, []);
  const [requests = 0, messages = 0, events = 0] = tallies.map((tally) => tally.completed);
  const apiChanges = round + Math.floor(round / 2);
  return { requests, wrkRequests, messages, events, fileReloads: round, apiChanges };
}

// An independent load generator, which detects errors on its own.
async function runWrk(url: string, seconds: number): Promise<number | undefined> {
  if (findProgram("wrk") === undefined) return undefined;
  const args = ["-t1", "-c32", `-d${Math.ceil(seconds)}s`, "--timeout", "10s", url];
  const output = await runProgram("wrk", args, (seconds + 30) * 1000);
  assert.doesNotMatch(output, /Socket errors|Non-2xx/, output);
  return Number(/(\d+) requests in/.exec(output)?.[1]);
}

async function upsertRoute(gateway: StagedGateway, route: RouteDocument): Promise<void> {
  const response = await fetch(`${gateway.url}/api/v1/routes`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(route),
  });
  assert.equal(response.status, 200, await response.text());
}

async function removeRoute(gateway: StagedGateway, prefix: string): Promise<void> {
  const query = new URLSearchParams({ prefix });
  const response = await fetch(`${gateway.url}/api/v1/routes?${query.toString()}`, {
    method: "DELETE",
  });
  assert.equal(response.status, 200, await response.text());
}

// A file change takes effect some time after the signal, an API change with its response.
async function awaitEffect(gateway: StagedGateway, path: string, url: string): Promise<void> {
  for (let attempt = 0; ; attempt += 1) {
    const seen = await readSeenUrl(gateway, path);
    if (seen === url) return;
    assert.ok(attempt < 200, `${path} still leads to ${seen}, not ${url}`);
    await sleep(25);
  }
}

async function expectUrl(gateway: StagedGateway, path: string, url: string): Promise<void> {
  assert.equal(await readSeenUrl(gateway, path), url);
}

async function readSeenUrl(gateway: StagedGateway, path: string): Promise<string | undefined> {
  const response = await fetch(gateway.url + path);
  const text = await response.text();
  return response.status === 200 ? (JSON.parse(text) as { url: string }).url : `${response.status}`;
}
