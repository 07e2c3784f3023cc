// Gateways that share a rate limit through a real Redis, which is killed and comes back.
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { findFreePort } from "@platform/kernel/testing";
import { runtimes, startGate } from "../fixture/gate-process.ts";
import { findRedisSkip, killRedis, startRedis } from "@platform/redis/testing";
import { waitFor } from "../fixture/condition.ts";

const LIMIT = 40;
/** On a busy machine some requests miss the deadline of Redis. */
const FLOODS_MAX = 30;

test(
  "two gateways admit no more than one limit, fall back to their own, and share again",
  { skip: findRedisSkip() },
  async (context) => {
    const arrivals: number[] = [];
    const upstream = createServer((_request, response) => {
      arrivals.push(performance.now());
      response.end("served");
    }).listen(0, "127.0.0.1");
    await once(upstream, "listening");
    context.after(() => upstream.close());
    const target = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
    const redis = await startRedis(context, await findFreePort());
    const config = {
      workers: 2,
      trusted_proxies: ["127.0.0.1"],
      limits_redis_url: redis.url,
      routes: [{ prefix: "/", target, rate_limit_rpm: LIMIT }],
    };
    const gates = await Promise.all(
      [0, 1].map((at) => startGate(context, { runtime: runtimes[at % runtimes.length]!, config })),
    );
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    context.after(() => agent.destroy());
    const ask = async (port: number, client: string): Promise<IncomingMessage> => {
      const headers = { "X-Forwarded-For": client };
      const sent = request({ host: "127.0.0.1", port, headers, agent }).end();
      const [answer] = (await once(sent, "response")) as [IncomingMessage];
      answer.resume();
      await once(answer, "end");
      return answer;
    };
    const flood = async (client: string): Promise<number> => {
      const before = arrivals.length;
      const asks = Array.from({ length: LIMIT * 4 }, (_, at) => ask(gates[at % 2]!.port, client));
      const statuses = (await Promise.all(asks)).map(({ statusCode }) => statusCode);
      const served = statuses.filter((status) => status === 200).length;
      assert.equal(statuses.filter((status) => status === 429).length, LIMIT * 4 - served);
      assert.equal(arrivals.length - before, served);
      return served;
    };
    const countLocal = async (): Promise<number> => {
      const texts = gates.map(async ({ url }) => (await fetch(`${url}/metrics`)).text());
      const counts = (await Promise.all(texts)).map(
        (text) => /^platform_gate_rate_limits_local_total (\d+)/m.exec(text)?.[1],
      );
      return counts.reduce((sum, count) => sum + Number(count), 0);
    };
    /** Asserts the exact limit. Requests that missed the deadline of Redis are counted apart, and such a flood is repeated. */
    const assertShared = async (network: string): Promise<void> => {
      for (let host = 1; host <= FLOODS_MAX; host++) {
        const before = await countLocal();
        const served = await flood(`${network}.${host}`);
        const local = (await countLocal()) - before;
        assert.ok(
          served >= LIMIT && served <= LIMIT + local,
          `${served}, ${local} decided locally`,
        );
        if (local === 0) return;
      }
      assert.fail(`none of ${FLOODS_MAX} floods was counted by Redis alone`);
    };
    const isShared = async (client: string): Promise<boolean> => {
      const first = await ask(gates[0]!.port, client);
      const second = await ask(gates[1]!.port, client);
      return [first, second].every(({ headers }, at) =>
        String(headers["ratelimit"]).includes(`;r=${LIMIT - 1 - at};`),
      );
    };
    let client = 0;
    const waitUntilShared = (): Promise<void> =>
      waitFor("both gateways count in Redis", () => isShared(`198.51.100.${++client}`));

    await waitUntilShared();
    await assertShared("192.0.2");
    const { headers } = await ask(gates[1]!.port, "192.0.2.1");
    assert.match(String(headers["retry-after"]), /^\d\d$/);

    await killRedis(redis);
    await Promise.all(
      gates.map((gate) => gate.waitForLine(({ msg }) => msg.startsWith("Redis is not available"))),
    );
    const alone = await flood("203.0.113.200");
    assert.ok(alone >= LIMIT && alone <= 2 * LIMIT, `${alone} without Redis`);

    await startRedis(context, redis.port);
    await Promise.all(
      gates.map((gate) =>
        gate.waitForLine(({ msg }) => msg.startsWith("Redis is available again")),
      ),
    );
    await waitUntilShared();
    await assertShared("203.0.113");
    assert.ok((await countLocal()) > 0, "the requests without Redis are counted");
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
    await waitFor("the gateway counts in Redis", async () => {
      const { headers } = await fetch(gate.url);
      return Number(/r=(\d+)/.exec(headers.get("ratelimit") ?? "")?.[1]) < 2;
    });
    redis.process.kill("SIGSTOP");
    context.after(() => redis.process.kill("SIGCONT"));
    for (let at = 0; at < 5; at++) statuses.push((await fetch(gate.url)).status);
    assert.deepEqual(statuses.slice(-2), [429, 429], "the local limit applies");
    const line = await gate.waitForLine(({ msg }) => msg.startsWith("Redis did not count"));
    assert.match(String(line["error"]), /no reply within 50 ms/);
  },
);
