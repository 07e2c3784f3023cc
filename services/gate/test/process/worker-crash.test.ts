// The gateway as a process of which one worker thread dies while requests run on all of them.
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  Agent,
  type ClientRequest,
  type IncomingMessage,
  type ServerResponse,
  createServer,
  get,
} from "node:http";
import { type TestContext, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { runtimes, startGate } from "../fixture/gate-process.ts";
import { readMetric } from "../fixture/metrics.ts";
import { serve } from "../fixture/serve.ts";

const WORKERS = 3;
/** So many that worker 0 has none or all of them less than once in 10^6 runs. */
const HELD = 36;
const LOAD_CLIENTS = 12;
const BODY = "x".repeat(20_000);
const hook = new URL("../fixture/thread-crash.ts", import.meta.url).href;
// Workers of Bun load nothing ahead of their own module.
const runtime = runtimes.find(({ name }) => name === "node")!;

/** Answers `/quick` immediately, and `/held/…` once it is released; `cut` are those whose connection broke before. */
async function startUpstream(context: TestContext) {
  const held = new Map<string, ServerResponse>();
  const cut = new Set<string>();
  const server = createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
    const path = request.url ?? "";
    if (!path.startsWith("/held/")) {
      response.end(BODY);
      return;
    }
    held.set(path, response);
    response.on("close", () => {
      held.delete(path);
      if (!response.writableEnded) cut.add(path);
    });
  });
  const url = await serve(context, server);
  const release = (): void => {
    for (const response of held.values()) response.end(BODY);
  };
  return { url, held, cut, release };
}

type Outcome = { kind: "answer"; status: number; body: string } | { kind: "broken" };

/** One request; a connection that breaks before the end of the answer is `broken`. */
async function finish(request: ClientRequest): Promise<Outcome> {
  try {
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    let body = "";
    for await (const chunk of answer.setEncoding("utf8")) body += String(chunk);
    return { kind: "answer", status: answer.statusCode ?? 0, body };
  } catch {
    return { kind: "broken" };
  }
}

function ask(url: string): Promise<Outcome> {
  return finish(get(url, { agent: new Agent({ keepAlive: false }) }));
}

/** Clients that ask again and again on connections that they keep; what they saw, by client. */
function startLoad(url: string) {
  const run = { isOver: false };
  const clients = Array.from({ length: LOAD_CLIENTS }, async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const seen = { answers: 0, broken: 0 };
    while (!run.isOver && seen.broken <= 2) {
      const outcome = await finish(get(url, { agent }));
      if (outcome.kind === "broken") seen.broken++;
      else {
        assert.equal(outcome.status, 200, outcome.body);
        assert.equal(outcome.body, BODY);
        seen.answers++;
      }
    }
    agent.destroy();
    return seen;
  });
  return async () => {
    run.isOver = true;
    return Promise.all(clients);
  };
}

for (const [kind, reason] of [
  ["throw", /crashed on purpose/],
  ["exit", /it ended with code 3/],
] as const) {
  test(`a worker that dies (${kind}) breaks its own connections only; it is replaced, counts are cleared, totals stay`, async (context) => {
    const upstreams = [await startUpstream(context), await startUpstream(context)];
    const targets = upstreams.map(({ url }) => url);
    const gate = await startGate(context, {
      runtime,
      config: {
        workers: WORKERS,
        routes: [{ prefix: "/", targets, load_balancer: "least_conn" }],
      },
      env: { NODE_OPTIONS: `--import ${hook}`, TEST_CRASH: kind },
    });
    const countHeld = (): number => upstreams.reduce((sum, { held }) => sum + held.size, 0);
    const readActive = (): Promise<number> => readMetric(gate.url, "platform_gate_upstream_active");
    const readOk = (): Promise<number> =>
      readMetric(gate.url, "platform_http_requests_total", { route: "/", status: "200" });

    const early = await Promise.all(Array.from({ length: 60 }, () => ask(`${gate.url}/quick`)));
    assert.ok(early.every((outcome) => outcome.kind === "answer" && outcome.status === 200));
    await waitFor(async () => (await readOk()) === 60, "60 requests in the metrics");

    const held = Array.from({ length: HELD }, (_, index) => ({
      path: `/held/${index}`,
      outcome: ask(`${gate.url}/held/${index}`),
    }));
    await waitFor(() => countHeld() === HELD, "every held request at an upstream");
    assert.equal(await readActive(), HELD);

    const endLoad = startLoad(`${gate.url}/quick`);
    context.after(() => void endLoad());
    gate.signal("SIGUSR2");
    const line = await gate.waitForLine(({ msg }) => /worker ended and will be replaced/.test(msg));
    assert.match(String(line["reason"]), reason);
    await waitFor(
      async () =>
        (await readMetric(gate.url, "platform_gate_workers_replaced_total")) === 1 &&
        (await readMetric(gate.url, "platform_gate_workers")) === WORKERS,
      "the replacement",
    );
    const load = await endLoad();
    // Once for the worker that died, once more if the next connection met its listener before that was closed.
    for (const { broken } of load) assert.ok(broken <= 2, `a client lost ${broken} requests`);

    const cut = new Set(upstreams.flatMap((upstream) => [...upstream.cut]));
    assert.ok(cut.size > 0 && cut.size < HELD, `${cut.size} held requests were cut`);
    assert.equal(await readActive(), HELD - cut.size);
    for (const upstream of upstreams) upstream.release();
    for (const { path, outcome } of held) {
      const expected: Outcome = cut.has(path)
        ? { kind: "broken" }
        : { kind: "answer", status: 200, body: BODY };
      assert.deepEqual(await outcome, expected, path);
    }

    await waitFor(async () => (await readActive()) === 0, "no request at an upstream");
    const answered = 60 + HELD - cut.size + load.reduce((sum, { answers }) => sum + answers, 0);
    const counted = await readOk();
    // An answer can be counted whose last bytes the dying worker did not send.
    assert.ok(
      counted >= answered && counted <= answered + LOAD_CLIENTS,
      `${counted} requests counted, ${answered} answered`,
    );

    const again: Promise<Outcome>[] = [];
    for (let index = 0; index < 20; index++) {
      again.push(ask(`${gate.url}/held/again-${index}`));
      await waitFor(() => countHeld() === index + 1, "the next request at an upstream");
    }
    assert.deepEqual(
      upstreams.map((upstream) => upstream.held.size),
      [10, 10],
    );
    for (const upstream of upstreams) upstream.release();
    for (const outcome of await Promise.all(again)) assert.equal(outcome.kind, "answer");
  });
}
