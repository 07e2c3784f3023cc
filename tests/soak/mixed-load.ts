// All kinds of traffic for some time; afterwards the gateway must hold no more resources than before.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import {
  startEventStreams,
  startRequests,
  startWebSockets,
  type RunningLoad,
} from "../stage/load.ts";
import { Stage, type StagedGateway } from "../stage/stage.ts";

const CLIENTS = 8;
const STREAM_CLIENTS = 8;
const SESSION_MS = 1_500;
const ABORTS_AT_ONCE = 8;
const SETTLE_MS = 1_500;
const SETTLE_ATTEMPTS = 6;
const MIB = 2 ** 20;
const OPEN_FILES_SLACK = 8;
const MEMORY_GROWTH_MAX = 1.25;
const MEMORY_SLACK_MIB = 16;

/** Resources of the process at one moment. */
export interface Holdings {
  openFiles: number;
  rssMib: number;
  /** Those of the main thread, from `/metrics`. */
  heapMib: number;
  externalMib: number;
  arrayBuffersMib: number;
}

/** Result of a run. */
export interface MixedLoadFigures {
  requests: number;
  streams: number;
  messages: number;
  events: number;
  aborted: number;
  before: Holdings;
  after: Holdings;
}

/** Throws if descriptors were leaked or, in long runs, if memory of the named kinds grew. */
export function assertReleased(
  { before, after }: Pick<MixedLoadFigures, "before" | "after">,
  memory: readonly ("rssMib" | "heapMib")[],
): void {
  assert.ok(
    after.openFiles <= before.openFiles + OPEN_FILES_SLACK,
    `${before.openFiles} descriptors before, ${after.openFiles} after`,
  );
  for (const kind of memory) {
    const most = before[kind] * MEMORY_GROWTH_MAX + MEMORY_SLACK_MIB;
    assert.ok(after[kind] <= most, `${kind} grew from ${before[kind]} to ${after[kind]}`);
  }
}

/**
 * Short responses, chunked streams, WebSockets and event streams that start and end, and clients that disconnect during
 * a request or a response. Before and after, the gateway is idle.
 */
export async function soakMixedLoad(
  seconds: number,
  env: Record<string, string> = {},
): Promise<MixedLoadFigures> {
  await using stage = new Stage();
  const upstream = await stage.startUpstream("mixed");
  const gateway = await stage.startGateway(
    [{ prefix: "/", target: upstream.url }],
    { workers: 2, upstream_keep_alive_timeout_ms: 1_000 },
    env,
  );
  await runMixture(gateway.url, gateway.port, Math.min(20, seconds));
  const before = await readSettledHoldings(gateway);
  const counts = await runMixture(gateway.url, gateway.port, seconds);
  const after = await readSettledHoldings(gateway);
  return { ...counts, before, after };
}

async function runMixture(
  url: string,
  port: number,
  seconds: number,
): Promise<Omit<MixedLoadFigures, "before" | "after">> {
  const deadline = Date.now() + seconds * 1000;
  const short = startRequests(url, "/short", CLIENTS, 1);
  const streams = startRequests(url, "/stream?chunks=20&ms=5", STREAM_CLIENTS);
  const tallies = { messages: 0, events: 0, aborted: 0 };
  while (Date.now() < deadline) {
    const sessions: RunningLoad[] = [
      await startWebSockets(`${url}/socket`, 10, 20),
      await startEventStreams(`${url}/events?ms=20`, 10),
    ];
    const until = Math.min(deadline, Date.now() + SESSION_MS);
    while (Date.now() < until) {
      await Promise.all(
        Array.from({ length: ABORTS_AT_ONCE }, (_, kind) => vanish(port, kind % 4)),
      );
      tallies.aborted += ABORTS_AT_ONCE;
    }
    const [messages, events] = await Promise.all(sessions.map((session) => session.stop()));
    assert.deepEqual([messages?.failures, events?.failures], [[], []]);
    tallies.messages += messages?.completed ?? 0;
    tallies.events += events?.completed ?? 0;
  }
  const [requests, streamed] = await Promise.all([short.stop(), streams.stop()]);
  assert.deepEqual([requests.failures, streamed.failures], [[], []]);
  return { requests: requests.completed, streams: streamed.completed, ...tallies };
}

/** The memory of a process in MiB. */
export function readRssMib(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024;
}

// A client that disconnects: in the head, in the body, before the response, in the response.
async function vanish(port: number, kind: number): Promise<void> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  const host = `Host: 127.0.0.1:${port}\r\n`;
  const requests = [
    `GET /short HTTP/1.1\r\n${host}X-Cut: `,
    `POST /echo HTTP/1.1\r\n${host}Content-Length: 100000\r\n\r\nhalf`,
    `GET /stream?chunks=1000&ms=50 HTTP/1.1\r\n${host}\r\n`,
    `GET /bytes?count=8000000 HTTP/1.1\r\n${host}\r\n`,
  ];
  socket.write(requests[kind] ?? "");
  await sleep(10 + kind * 10);
  if (kind % 2 === 0) socket.resetAndDestroy();
  else socket.destroy();
}

// Idle: the number of open files has stopped falling.
/** Resources of the gateway when its connections have ended. */
export async function readSettledHoldings(gateway: StagedGateway): Promise<Holdings> {
  let openFiles = Infinity;
  for (let attempt = 0; attempt < SETTLE_ATTEMPTS; attempt += 1) {
    await sleep(SETTLE_MS);
    const now = readdirSync(`/proc/${gateway.process.pid}/fd`).length;
    if (now >= openFiles) break;
    openFiles = now;
  }
  const response = await fetch(`${gateway.url}/metrics`, { headers: { connection: "close" } });
  const text = await response.text();
  return {
    openFiles,
    rssMib: Math.round(readRssMib(gateway.process.pid)),
    heapMib: readMib(text, "nodejs_heap_size_used_bytes"),
    externalMib: readMib(text, "nodejs_external_memory_bytes"),
    arrayBuffersMib: readMib(text, "nodejs_array_buffers_bytes"),
  };
}

/** A gauge of bytes in the text format of Prometheus, in MiB; NaN if it is missing. */
function readMib(text: string, name: string): number {
  const value = new RegExp(`^${name}(?:\\{.*?\\})? (\\S+)$`, "m").exec(text)?.[1];
  return Math.round(Number(value ?? Number.NaN) / MIB);
}
