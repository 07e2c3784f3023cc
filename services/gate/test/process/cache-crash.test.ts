// The response cache while a worker thread dies that fetches, stores and sends responses: one store for all workers.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { Agent, createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@platform/testing/wait";
import { runtimes, startGate } from "../fixture/gate-process.ts";
import { readMetric } from "../fixture/metrics.ts";

const WORKERS = 3;
const LARGE = randomBytes(300_000);
const HALF = LARGE.length / 2;
const HELD_KEYS = 18;
const WAITING_PER_KEY = 6;
const FRESH_KEYS = 20;
/** Keys that share their flight with another one are fetched by each client: 2 % for this number of keys. */
const SHARED_FLIGHTS_MAX = 2;
const LOAD_CLIENTS = 6;
const PAUSE_MS = 5;
/** Connections of a client that the dead worker may break: its own, and one that its listener had accepted. */
const BROKEN_MAX = 2;
const hook = new URL("../fixture/thread-crash.ts", import.meta.url).href;
// Workers of Bun load nothing ahead of their own module.
const runtime = runtimes.find(({ name }) => name === "node")!;

type Outcome = "whole" | "broken" | "torn" | `status ${number}`;

/** Sends half of each `/held/…` until it is released, everything else whole. */
async function startUpstream(context: TestContext) {
  const requests = new Map<string, number>();
  const held = new Set<ServerResponse>();
  const state = { isReleased: false };
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    requests.set(path, (requests.get(path) ?? 0) + 1);
    response.writeHead(200, { "Cache-Control": "max-age=600", "Content-Length": LARGE.length });
    if (!path.startsWith("/held/") || state.isReleased) {
      response.end(LARGE);
      return;
    }
    response.write(LARGE.subarray(0, HALF));
    held.add(response);
    response.on("close", () => held.delete(response));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  context.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const release = (): void => {
    state.isReleased = true;
    for (const response of held) response.end(LARGE.subarray(HALF));
  };
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, requests, held, release };
}

/** One request. `broken`: its connection was closed before the end. `torn`: it ended with other bytes. */
async function ask(url: string, agent?: Agent): Promise<Outcome> {
  const sent = get(url, { agent: agent ?? new Agent({ keepAlive: false }) });
  try {
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    const hash = createHash("sha256");
    for await (const piece of response) hash.update(piece as Buffer);
    if (response.statusCode !== 200) return `status ${response.statusCode ?? 0}`;
    return hash.digest("hex") === WHOLE_DIGEST ? "whole" : "torn";
  } catch {
    return "broken";
  }
}

const WHOLE_DIGEST = createHash("sha256").update(LARGE).digest("hex");

/** Clients that read stored responses again and again; their outcomes by client. */
function startLoad(url: string) {
  const run = { isOver: false };
  const clients = Array.from({ length: LOAD_CLIENTS }, async (_, index) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const seen: Record<string, number> = {};
    while (!run.isOver) {
      const outcome = await ask(`${url}/stored/${index % 4}`, agent);
      seen[outcome] = (seen[outcome] ?? 0) + 1;
      await sleep(PAUSE_MS);
    }
    agent.destroy();
    return seen;
  });
  return async () => {
    run.isOver = true;
    return Promise.all(clients);
  };
}

for (const kind of ["throw", "exit"]) {
  test(`a worker that dies (${kind}) while it fills the cache leaves no key locked and no torn response`, async (context) => {
    const upstream = await startUpstream(context);
    const gate = await startGate(context, {
      runtime,
      config: {
        workers: WORKERS,
        routes: [{ prefix: "/", target: upstream.url, cache_ttl_seconds: 60 }],
      },
      env: { NODE_OPTIONS: `--import ${hook}`, TEST_CRASH: kind },
    });
    const endLoad = startLoad(gate.url);
    context.after(() => void endLoad());
    // For each key one request fetches, in any worker; the others wait for it, in all workers.
    const paths = Array.from({ length: HELD_KEYS }, (_, index) => `/held/${index}`);
    const asks = paths.flatMap((path) =>
      Array.from({ length: WAITING_PER_KEY }, () => ask(`${gate.url}${path}`)),
    );
    await waitFor(() => paths.every((path) => upstream.requests.has(path)), "a fetch of each key");
    const fetched = new Map(upstream.requests);

    gate.signal("SIGUSR2");
    await gate.waitForLine(({ msg }) => /worker ended and will be replaced/.test(msg));
    await waitFor(
      () => paths.some((path) => upstream.requests.get(path)! > fetched.get(path)!),
      "the fetches of the keys that it held",
    );
    upstream.release();
    const outcomes = await Promise.all(asks);
    const broken = outcomes.filter((outcome) => outcome === "broken").length;
    assert.ok(broken > 0 && broken < asks.length / 2 + WORKERS * 10, `${broken} were broken`);
    assert.ok(
      outcomes.every((outcome) => outcome === "whole" || outcome === "broken"),
      outcomes.join(),
    );
    await waitFor(
      async () => (await readMetric(gate.url, "platform_gate_workers")) === WORKERS,
      "the replacement",
    );
    for (const seen of await endLoad()) {
      const { whole = 0, broken: lost = 0, ...others } = seen;
      assert.deepEqual(others, {});
      assert.ok(whole > 0 && lost <= BROKEN_MAX, JSON.stringify(seen));
    }

    // The held keys are stored now, except those whose clients were all at the dead worker: nobody fetched them again.
    const stored = paths.filter((_, index) => {
      const from = index * WAITING_PER_KEY;
      return outcomes.slice(from, from + WAITING_PER_KEY).includes("whole");
    });
    assert.ok(stored.length > HELD_KEYS / 2, `${stored.length} keys were answered`);
    const before = new Map(upstream.requests);
    assert.ok(
      (await Promise.all(stored.map((path) => ask(`${gate.url}${path}`)))).every(
        (outcome) => outcome === "whole",
      ),
    );
    assert.deepEqual(upstream.requests, before);
    // Each new key is fetched once for all workers.
    const fresh = Array.from({ length: FRESH_KEYS }, (_, index) => `/fresh/${index}`);
    const later = fresh.flatMap((path) => [1, 2, 3].map(() => ask(`${gate.url}${path}`)));
    assert.ok((await Promise.all(later)).every((outcome) => outcome === "whole"));
    const shared = fresh.filter((path) => upstream.requests.get(path) !== 1);
    assert.ok(shared.length <= SHARED_FLIGHTS_MAX, shared.join());
  });
}
