// An upstream that is away for a quarter of a second, such as a restart: the default circuit does not make it longer.
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, createServer, request, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@platform/testing/wait";
import { runtimesOfRules, startGate } from "../fixture/gate-process.ts";

const ABSENCES = 8;
const ABSENCE_MS = 250;
/** Between two requests of the quiet route, which has none before an absence. */
const QUIET_MS = 20;
const BUSY_CLIENTS = 4;
const REFUSED_MS_MAX = 500;
/** Steps of the clock that shows for how long a busy machine ran none of us. */
const STEP_MS = 10;

interface Answer {
  atMs: number;
  status: number;
}

async function listen(port = 0): Promise<Server> {
  const server = createServer((_incoming, response) => response.end("here")).listen(
    port,
    "127.0.0.1",
  );
  await once(server, "listening");
  return server;
}

async function ask(port: number, agent: Agent, path: string): Promise<number> {
  const sent = request({ host: "127.0.0.1", port, path, agent }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  response.resume();
  await once(response, "end");
  return response.statusCode!;
}

/** Time from the first to the last 503, in ms. */
function measureRefused(answers: readonly Answer[]): number {
  const refused = answers.filter(({ status }) => status === 503).map(({ atMs }) => atMs);
  return refused.length === 0 ? 0 : Math.max(...refused) - Math.min(...refused);
}

/** Measures how late timers are, in ms, summed since the last call. */
function watchDelays(): { take(): number; stop(): void } {
  let [sumMs, lastMs] = [0, performance.now()];
  const step = (): void => {
    const nowMs = performance.now();
    sumMs += Math.max(0, nowMs - lastMs - 2 * STEP_MS);
    lastMs = nowMs;
  };
  const timer = setInterval(step, STEP_MS);
  const take = (): number => {
    const taken = sumMs;
    sumMs = 0;
    return taken;
  };
  return { take, stop: () => clearInterval(timer) };
}

test("eight absences of 250 ms cost a quiet and a busy route at most 500 ms of 503 each", async (context) => {
  let server = await listen();
  const { port: upstreamPort } = server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true });
  context.after(() => {
    agent.destroy();
    server.closeAllConnections();
    server.close();
  });
  const target = `http://127.0.0.1:${upstreamPort}`;
  const routes = ["/quiet", "/busy"].map((prefix) => ({ prefix, target }));
  const config = { workers: 2, routes };
  const { port } = await startGate(context, { runtime: runtimesOfRules[0]!, config });
  const answers: Record<"quiet" | "busy", Answer[]> = { quiet: [], busy: [] };
  const note = async (of: "quiet" | "busy"): Promise<void> => {
    const status = await ask(port, agent, `/${of}`);
    answers[of].push({ atMs: performance.now(), status });
  };
  const over = new AbortController();
  const clients = Array.from({ length: BUSY_CLIENTS }, async () => {
    while (!over.signal.aborted) await note("busy");
  });

  const delays = watchDelays();
  context.after(() => delays.stop());
  const rows: string[] = [];
  for (let absence = 1; absence <= ABSENCES; absence++) {
    answers.quiet = [];
    answers.busy = [];
    delays.take();
    server.closeAllConnections();
    server.close();
    const backAtMs = performance.now() + ABSENCE_MS;
    const isBack = sleep(ABSENCE_MS).then(async () => void (server = await listen(upstreamPort)));
    const isServed = (of: "quiet" | "busy"): boolean =>
      answers[of].slice(-5).every(({ atMs, status }) => atMs > backAtMs && status === 200);
    await waitFor(async () => {
      await Promise.all([note("quiet"), sleep(QUIET_MS)]);
      return isServed("quiet") && isServed("busy");
    }, "both routes to serve again");
    await isBack;
    const [quietMs, busyMs] = [measureRefused(answers.quiet), measureRefused(answers.busy)];
    const lateMs = delays.take();
    const figures = [quietMs, busyMs, lateMs].map(Math.round);
    rows.push(
      `absence ${absence}: ${figures[0]} ms quiet, ${figures[1]} ms busy, ${figures[2]} ms late`,
    );
    assert.ok(Math.max(quietMs, busyMs) <= REFUSED_MS_MAX + lateMs, rows.join("\n"));
  }
  over.abort();
  await Promise.all(clients);
  for (const row of rows) context.diagnostic(row);
});
