// Load generators that account for every request.
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { WebSocket } from "ws";

const FAILURES_KEPT_MAX = 20;

/** Outcomes of requests. */
export interface LoadTally {
  completed: number;
  failed: number;
  /** Descriptions of the first failures. */
  failures: string[];
}

/** A load that runs until it is stopped. */
export interface RunningLoad {
  readonly tally: LoadTally;
  /** Waits for requests in flight; resolves with the final counts. */
  stop(): Promise<LoadTally>;
}

/** Keep-alive clients that each repeat a GET, check for status 200 and read the body. */
export function startRequests(
  origin: string,
  path: string,
  connections: number,
  pauseMs = 0,
): RunningLoad {
  const pool = new Pool(origin, { connections, pipelining: 1 });
  const tally = emptyTally();
  const state = { isRunning: true };
  const workers = Array.from({ length: connections }, async () => {
    while (state.isRunning) {
      try {
        const { statusCode, body } = await pool.request({ path, method: "GET" });
        const text = await body.text();
        if (statusCode === 200) tally.completed += 1;
        else noteFailure(tally, `status ${statusCode}: ${text.slice(0, 200)}`);
      } catch (error) {
        noteFailure(tally, String(error));
      }
      if (pauseMs > 0) await sleep(pauseMs);
    }
  });
  return {
    tally,
    stop: async () => {
      state.isRunning = false;
      await Promise.all(workers);
      await pool.close();
      return tally;
    },
  };
}

/** WebSockets that each send a numbered message every `intervalMs` and expect it back in order. */
export async function startWebSockets(
  url: string,
  count: number,
  intervalMs: number,
): Promise<RunningLoad> {
  const tally = emptyTally();
  const sockets = await Promise.all(
    Array.from({ length: count }, () => openEchoSocket(url, intervalMs, tally)),
  );
  return {
    tally,
    stop: async () => {
      await Promise.all(sockets.map((socket) => socket.finish()));
      return tally;
    },
  };
}

/** SSE streams whose ids must be consecutive until they are stopped. */
export async function startEventStreams(url: string, count: number): Promise<RunningLoad> {
  const tally = emptyTally();
  const abort = new AbortController();
  const responses = await Promise.all(
    Array.from({ length: count }, () => fetch(url, { signal: abort.signal })),
  );
  const readers = responses.map(({ status, body }) => {
    if (status !== 200 || body === null) throw new Error(`stream: status ${status}`);
    return readEvents(body, tally, abort.signal);
  });
  return {
    tally,
    stop: async () => {
      abort.abort();
      await Promise.all(readers);
      return tally;
    },
  };
}

async function openEchoSocket(
  url: string,
  intervalMs: number,
  tally: LoadTally,
): Promise<{ finish(): Promise<void> }> {
  const socket = new WebSocket(url.replace(/^http/, "ws"));
  await once(socket, "open");
  const counts = { sent: 0, received: 0 };
  let isFinishing = false;
  const timer = setInterval(() => socket.send(String((counts.sent += 1))), intervalMs);
  socket.on("message", (data: Buffer) => {
    counts.received += 1;
    const text = data.toString();
    if (text === String(counts.received)) tally.completed += 1;
    else noteFailure(tally, `message ${text} came in place of ${counts.received}`);
  });
  socket.on("error", (error) => noteFailure(tally, String(error)));
  socket.on("close", (code) => {
    clearInterval(timer);
    if (!isFinishing) noteFailure(tally, `closed with ${code} after ${counts.received} messages`);
  });
  return {
    finish: async () => {
      clearInterval(timer);
      for (let waited = 0; counts.received < counts.sent && waited < 100; waited += 1) {
        await sleep(20);
      }
      const lost = counts.sent - counts.received;
      if (lost > 0) noteFailure(tally, `${lost} messages never came back`);
      isFinishing = true;
      socket.close();
    },
  };
}

async function readEvents(
  body: ReadableStream<Uint8Array>,
  tally: LoadTally,
  signal: AbortSignal,
): Promise<void> {
  let text = "";
  let expectedId = 1;
  try {
    const decoder = new TextDecoder();
    for await (const chunk of body) {
      text += decoder.decode(chunk, { stream: true });
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const id = Number(/^id: (\d+)$/m.exec(text.slice(0, end))?.[1]);
        if (id === expectedId) tally.completed += 1;
        else noteFailure(tally, `event ${id} came in place of ${expectedId}`);
        expectedId = id + 1;
        text = text.slice(end + 2);
      }
    }
    noteFailure(tally, `stream ended after event ${expectedId - 1}`);
  } catch (error) {
    if (!signal.aborted) noteFailure(tally, String(error));
  }
}

function emptyTally(): LoadTally {
  return { completed: 0, failed: 0, failures: [] };
}

function noteFailure(tally: LoadTally, failure: string): void {
  tally.failed += 1;
  if (tally.failures.length < FAILURES_KEPT_MAX) tally.failures.push(failure);
}
