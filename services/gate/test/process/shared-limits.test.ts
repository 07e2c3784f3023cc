// Gateways that share a rate limit through a real Redis, which is killed and comes back.
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { findFreePort } from "@platform/kernel/testing";
import { waitFor } from "@platform/testing/wait";
import { makeFolder, runtimes, runtimesOfRules, startGate } from "../fixture/gate-process.ts";
import { RedisClient } from "@platform/redis";
import { findRedisSkip, killRedis, startRedis } from "@platform/redis/testing";
import { RateLimiter } from "../../src/filter/limit/rate-limiter.ts";
import {
  allocateMetricBlock,
  MetricBlock,
  RATE_TABLE_BYTES,
  SharedRateTable,
} from "../../src/shared-state/index.ts";

const LIMIT = 40;
const WINDOW_MS = 60_000;
/** On a busy machine some requests miss the deadline of Redis. */
const FLOODS_MAX = 30;

/** A request that the gateways admitted, by the upstream's clock. */
interface Arrival {
  client: string;
  atMs: number;
}

/** A time in which a gateway decided without Redis. */
interface LocalPeriod {
  fromMs: number;
  toMs: number;
}

test(
  "two gateways admit no more than one limit, fall back to their own, and share again",
  { skip: findRedisSkip() },
  async (context) => {
    const arrivals: Arrival[] = [];
    const upstream = createServer(({ url }, response) => {
      arrivals.push({ client: url!.slice(1), atMs: performance.now() });
      response.end("served");
    }).listen(0, "127.0.0.1");
    await once(upstream, "listening");
    context.after(() => upstream.close());
    const target = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const folder = makeFolder(context);
    const redis = await startRedis(context, await findFreePort(), folder);
    const config = {
      workers: 2,
      trusted_proxies: ["127.0.0.1"],
      limits_redis_url: redis.url,
      routes: [{ prefix: "/", target, rate_limit_rpm: LIMIT }],
    };
    const gates = await Promise.all(
      [0, 1].map((at) =>
        startGate(context, { runtime: runtimesOfRules[at % runtimesOfRules.length]!, config }),
      ),
    );
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    context.after(() => agent.destroy());
    const ask = async (port: number, client: string): Promise<IncomingMessage> => {
      const headers = { "X-Forwarded-For": client };
      const path = `/${client}`;
      const sent = request({ host: "127.0.0.1", port, path, headers, agent }).end();
      const [answer] = (await once(sent, "response")) as [IncomingMessage];
      answer.resume();
      await once(answer, "end");
      return answer;
    };
    const countLocal = async (): Promise<number> => {
      const texts = gates.map(async ({ url }) => (await fetch(`${url}/metrics`)).text());
      const counts = (await Promise.all(texts)).map(
        (text) => /^platform_gate_rate_limits_local_total (\d+)/m.exec(text)?.[1],
      );
      return counts.reduce((sum, count) => sum + Number(count), 0);
    };
    const localPeriods: LocalPeriod[] = [];
    const flood = async (client: string): Promise<{ served: number; local: number }> => {
      const [fromMs, localBefore, before] = [
        performance.now(),
        await countLocal(),
        arrivals.length,
      ];
      const asks = Array.from({ length: LIMIT * 4 }, (_, at) => ask(gates[at % 2]!.port, client));
      const statuses = (await Promise.all(asks)).map(({ statusCode }) => statusCode);
      const served = statuses.filter((status) => status === 200).length;
      assert.equal(statuses.filter((status) => status === 429).length, LIMIT * 4 - served);
      assert.equal(arrivals.length - before, served);
      const local = (await countLocal()) - localBefore;
      if (local > 0) localPeriods.push({ fromMs, toMs: performance.now() });
      return { served, local };
    };
    /** Floods until Redis alone has counted a flood, and returns its client. */
    const floodShared = async (findClient: (at: number) => string): Promise<string> => {
      for (let at = 1; at <= FLOODS_MAX; at++) {
        const client = findClient(at);
        if ((await flood(client)).local === 0) return client;
      }
      return assert.fail(`none of ${FLOODS_MAX} floods was counted by Redis alone`);
    };
    const countArrivals = (client: string): number =>
      arrivals.filter((arrival) => arrival.client === client).length;
    const isShared = async (client: string): Promise<boolean> => {
      const first = await ask(gates[0]!.port, client);
      const second = await ask(gates[1]!.port, client);
      return [first, second].every(({ headers }, at) =>
        String(headers["ratelimit"]).includes(`;r=${LIMIT - 1 - at};`),
      );
    };
    let host = 0;
    const waitUntilShared = (): Promise<true> =>
      waitFor(() => isShared(`198.51.100.${++host}`), "both gateways count in Redis");

    await waitUntilShared();
    const client = await floodShared((at) => `192.0.2.${at}`);
    assert.equal(countArrivals(client), LIMIT);
    const { headers } = await ask(gates[1]!.port, client);
    assert.match(String(headers["retry-after"]), /^\d\d$/);

    await killRedis(redis);
    await Promise.all(
      gates.map((gate) => gate.waitForLine(({ msg }) => msg.startsWith("Redis is not available"))),
    );
    const alone = await flood(client);
    assert.equal(alone.local, LIMIT * 4);
    assert.ok(alone.served >= LIMIT && alone.served <= 2 * LIMIT, `${alone.served} without Redis`);

    await startRedis(context, redis.port, folder);
    await Promise.all(
      gates.map((gate) =>
        gate.waitForLine(({ msg }) => msg.startsWith("Redis is available again")),
      ),
    );
    await waitUntilShared();
    await floodShared(() => client);
    assert.equal(countArrivals(await floodShared((at) => `203.0.113.${at}`)), LIMIT);
    assertWindows(arrivals, localPeriods);
  },
);

/** Asserts that Redis admitted at most {@link LIMIT} requests of each client in any 60 s, between local periods too. */
function assertWindows(arrivals: readonly Arrival[], localPeriods: readonly LocalPeriod[]): void {
  const shared = arrivals.filter(
    ({ atMs }) => !localPeriods.some(({ fromMs, toMs }) => atMs >= fromMs && atMs <= toMs),
  );
  for (const [client, own] of Map.groupBy(shared, (arrival) => arrival.client)) {
    own.forEach(({ atMs }, first) => {
      const end = own.findIndex((later) => later.atMs >= atMs + WINDOW_MS);
      const count = (end === -1 ? own.length : end) - first;
      assert.ok(count <= LIMIT, `${count} requests of ${client} in 60 s from ${atMs} ms`);
    });
  }
}

test(
  "counts in Redis end with their window, and belong to one route",
  { skip: findRedisSkip() },
  async (context) => {
    const redis = await startRedis(context, await findFreePort());
    const ignore = (): void => undefined;
    const client = new RedisClient({ url: redis.url, onFailure: ignore, onRecovery: ignore });
    context.after(() => client.close());
    const gate = await startGate(context, {
      runtime: runtimes[0]!,
      config: {
        workers: 1,
        limits_redis_url: redis.url,
        routes: ["GET", "POST"].map((method) => ({
          prefix: "/",
          methods: [method],
          respond: { status: 200 },
          rate_limit_rpm: 3,
        })),
      },
    });
    let keys: string[] = [];
    await waitFor(async () => {
      await (await fetch(gate.url)).arrayBuffer();
      keys = client.isReady
        ? ((await client.send("KEYS", "platform:gate:rate:*")) as string[])
        : [];
      return keys.length > 0;
    }, "a count in Redis");
    for (const key of keys) {
      const seconds = Number(await client.send("TTL", key));
      assert.ok(seconds > 0 && seconds <= WINDOW_MS / 1_000 + 1, `${key}: ${seconds}`);
    }
    for (let times = 0; times < 3; times++) await (await fetch(gate.url)).arrayBuffer();
    const posted = await fetch(gate.url, { method: "POST" });
    assert.match(
      posted.headers.get("ratelimit") ?? "",
      /;r=2;/,
      "another route of the same prefix",
    );
  },
);

test(
  "a thread that is busy beyond the deadline still reads Redis' reply",
  { skip: findRedisSkip() },
  async (context) => {
    const redis = await startRedis(context, await findFreePort());
    const block = new MetricBlock(allocateMetricBlock());
    const limiter = new RateLimiter({
      table: new SharedRateTable(new SharedArrayBuffer(RATE_TABLE_BYTES), 1),
      block,
      readNowMs: () => performance.now(),
      log: () => undefined,
    });
    limiter.setRedis(redis.url);
    context.after(() => limiter.close());
    const key = limiter.findKey({ space: 1, name: "busy", perMinute: 3 }, "client");
    // The first replies load the script.
    await waitFor(async () => {
      const before = block.readCounter("rateLimitsLocal");
      await limiter.take(key);
      return block.readCounter("rateLimitsLocal") === before;
    }, "a verdict of Redis");
    const before = block.readCounter("rateLimitsLocal");
    const verdict = limiter.take(key);
    await setImmediate();
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
    await verdict;
    assert.equal(block.readCounter("rateLimitsLocal"), before);
  },
);

test(
  "a Redis that accepts but does not answer delays requests by its deadline only",
  { skip: findRedisSkip() },
  async (context) => {
    const upstream = createServer((_request, response) => response.end("served"));
    upstream.listen(0, "127.0.0.1");
    await once(upstream, "listening");
    context.after(() => upstream.close());
    const target = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const redis = await startRedis(context, await findFreePort());
    const gate = await startGate(context, {
      runtime: runtimes[0]!,
      config: {
        workers: 1,
        limits_redis_url: redis.url,
        routes: [{ prefix: "/", target, rate_limit_rpm: 3 }],
      },
    });
    const statuses: number[] = [];
    await waitFor(async () => {
      const { headers } = await fetch(gate.url);
      return Number(/r=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1]) < 2;
    }, "the gateway counts in Redis");
    redis.process.kill("SIGSTOP");
    context.after(() => redis.process.kill("SIGCONT"));
    for (let at = 0; at < 5; at++) statuses.push((await fetch(gate.url)).status);
    assert.deepEqual(statuses.slice(-2), [429, 429], "the local limit applies");
    const line = await gate.waitForLine(({ msg }) => msg.startsWith("Redis did not count"));
    assert.match(String(line["error"]), /no reply within 50 ms/);
  },
);
