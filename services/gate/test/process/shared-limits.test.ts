// Gateways that share a rate limit through a real Redis, which is killed and comes back.
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent, createServer, request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { findFreePort } from "@platform/kernel/testing";
import { runtimes, startGate } from "../fixture/gate-process.ts";
import { findRedisSkip, killRedis, startRedis } from "../fixture/redis-server.ts";
import { waitFor } from "../fixture/condition.ts";

const LIMIT = 40;

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
    assert.equal(await flood("192.0.2.1"), LIMIT);
    const { headers } = await ask(gates[1]!.port, "192.0.2.1");
    assert.match(String(headers["retry-after"]), /^\d\d$/);

    await killRedis(redis);
    await Promise.all(
      gates.map((gate) => gate.waitForLine(({ msg }) => msg.startsWith("Redis is not available"))),
    );
    const alone = await flood("192.0.2.2");
    assert.ok(alone >= LIMIT && alone <= 2 * LIMIT, `${alone} without Redis`);

    await startRedis(context, redis.port);
    await Promise.all(
      gates.map((gate) =>
        gate.waitForLine(({ msg }) => msg.startsWith("Redis is available again")),
      ),
    );
    await waitUntilShared();
    assert.equal(await flood("192.0.2.3"), LIMIT);
    const scrape = await fetch(`${gates[0]!.url}/metrics`);
    assert.match(await scrape.text(), /^platform_gate_rate_limits_local_total [1-9]/m);
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
