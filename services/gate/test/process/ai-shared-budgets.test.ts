// Budgets of several gateways in a real Redis: sums, tokens, and what happens without it.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { findFreePort } from "@platform/kernel/testing";
import { RedisClient } from "@platform/redis";
import { findRedisSkip, killRedis, startRedis } from "@platform/redis/testing";
import { waitFor } from "@platform/testing/wait";
import { RAISE_SCRIPT, spentKey } from "../../src/ai/ledger/account-scripts.ts";
import { SharedAccounts, type SharedRequest } from "../../src/ai/ledger/shared-accounts.ts";
import {
  type GateProcess,
  makeFolder,
  runtimesOfRules,
  startGate,
} from "../fixture/gate-process.ts";
import { createModelProvider } from "../fixture/model-provider.ts";
import { serve } from "../fixture/serve.ts";

const BILLING = "/api/v1/admin/ai-billing";
/** On a busy machine some requests miss the deadline of Redis. */
const ROUNDS_MAX = 30;
const DAY = 20_000;
const USD = 1_000_000_000_000n;

type Gate = GateProcess & { url: string };

async function setBudget(gates: readonly Gate[], usd: number): Promise<void> {
  for (const { url } of gates) {
    const body = JSON.stringify({ tenant_id: "anonymous", max_cost_per_day_usd: usd });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}${BILLING}`, { method: "POST", headers, body });
    assert.equal(answer.status, 200);
  }
}

/** Statuses of requests that cost one dollar each, at the gateways in turns. */
async function spend(gates: readonly Gate[], count: number): Promise<number> {
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "x" }] });
  const asks = Array.from({ length: count }, async (_, at) => {
    const { url } = gates[at % gates.length]!;
    const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", body });
    await answer.arrayBuffer();
    return answer.status;
  });
  const statuses = await Promise.all(asks);
  assert.ok(
    statuses.every((status) => status === 200 || status === 429),
    statuses.join(),
  );
  return statuses.filter((status) => status === 200).length;
}

async function countLocal(gates: readonly Gate[]): Promise<number> {
  let sum = 0;
  for (const { url } of gates) {
    const text = await (await fetch(`${url}/metrics`)).text();
    sum += Number(/^platform_gate_ai_accounts_local_total (\d+)/m.exec(text)?.[1]);
  }
  return sum;
}

/** Rounds that Redis alone has counted spend what the budget has, to the cent. Returns what was spent. */
async function spendShared(gates: readonly Gate[]): Promise<number> {
  let spent = 0;
  let shared = 0;
  for (let round = 0; round < ROUNDS_MAX && shared < 3; round++) {
    await setBudget(gates, spent + 3);
    const before = await countLocal(gates);
    const passed = await spend(gates, 32);
    spent += passed;
    if ((await countLocal(gates)) > before) continue;
    assert.equal(passed, 3, `round ${round}`);
    shared++;
  }
  assert.equal(shared, 3);
  return spent;
}

/** Spends the last dollar, until Redis alone has counted. */
async function spendLast(gates: readonly Gate[], before: number): Promise<number> {
  let spent = before;
  for (let round = 0; round < ROUNDS_MAX; round++) {
    await setBudget(gates, spent + 1);
    const local = await countLocal(gates);
    const passed = await spend(gates, 8);
    spent += passed;
    if ((await countLocal(gates)) > local) continue;
    assert.equal(passed, 1);
    return spent;
  }
  return assert.fail("Redis has counted no round alone");
}

async function waitForSum(t: TestContext, url: string, usd: number): Promise<void> {
  const client = new RedisClient({
    url,
    onFailure: () => undefined,
    onRecovery: () => undefined,
  });
  t.after(() => client.close());
  const today = Math.floor(Date.now() / 86_400_000);
  await waitFor(async () => {
    const sums = await client.send("HVALS", spentKey("anonymous", today)).catch(() => []);
    const sum = (sums as string[]).reduce((all, text) => all + BigInt(text), 0n);
    return sum === BigInt(usd) * USD;
  });
}

test(
  "two gateways never spend more than one budget, go on without Redis, and share again",
  { skip: findRedisSkip() },
  async (t) => {
    const provider = createModelProvider({ usage: { input: 0, output: 1 } });
    const target = await serve(t, provider.server);
    const folder = makeFolder(t);
    const redis = await startRedis(t, await findFreePort(), folder);
    const config = {
      workers: 2,
      limits_redis_url: redis.url,
      ai_prices: { m: { input: 0, output: 0, request: 1 } },
      routes: [{ prefix: "/", target, ai: true }],
    };
    const gates = await Promise.all(
      [0, 1].map((at) =>
        startGate(t, { runtime: runtimesOfRules[at % runtimesOfRules.length]!, config }),
      ),
    );
    let spent = await spendShared(gates);

    await setBudget(gates, spent + 4);
    await killRedis(redis);
    const lost = ({ msg }: { msg: string }): boolean =>
      msg === "Redis is not available, budgets of models apply to this gateway alone";
    await Promise.all(gates.map((gate) => gate.waitForLine(lost)));
    // Each counts on from the last sum that it knows.
    const alone = await spend(gates, 32);
    assert.ok(alone >= 4 && alone <= 8, `${alone} without Redis`);
    spent += alone;

    // It comes back without its data: the gateways know what they have spent.
    await startRedis(t, redis.port, folder);
    const back = ({ msg }: { msg: string }): boolean =>
      msg === "Redis is available again, budgets of models are shared";
    await Promise.all(gates.map((gate) => gate.waitForLine(back)));
    await waitForSum(t, redis.url, spent);
    spent = await spendLast(gates, spent);
    assert.equal(provider.received.length, spent);
  },
);

function openAccounts(url: string, gateway: string) {
  const counted = { local: 0 };
  const accounts = new SharedAccounts({
    gateway,
    readNowMs: () => performance.now(),
    onLocal: () => counted.local++,
    log: () => undefined,
  });
  accounts.setRedis(url);
  /** Reserves until Redis has answered in time. */
  const reserve = async (request: Partial<SharedRequest>) => {
    const whole = { tenant: "t", day: DAY, pico: 0n, limit: undefined, windows: [], ...request };
    for (;;) {
      const verdict = await accounts.reserve(whole);
      if (verdict.kind !== "local") return verdict;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  };
  return { accounts, counted, reserve };
}

test("sums are exact beyond the integers of Lua", { skip: findRedisSkip() }, async (t) => {
  const redis = await startRedis(t, await findFreePort(), makeFolder(t));
  const [one, two] = [openAccounts(redis.url, "one"), openAccounts(redis.url, "two")];
  t.after(() => {
    one.accounts.close();
    two.accounts.close();
  });
  const million = 1_000_000n * USD;
  const limit = 2n * million + 1n;
  const first = await one.reserve({ pico: million, limit });
  assert.equal(first.kind, "reserved");
  const second = await two.reserve({ pico: million, limit });
  assert.ok(second.kind === "reserved" && second.others === million);
  assert.equal((await one.reserve({ pico: 2n, limit })).kind, "no-money");
  assert.equal((await one.reserve({ pico: 1n, limit })).kind, "reserved");
  assert.equal((await two.reserve({ pico: 1n, limit })).kind, "no-money");
  assert.equal((await two.reserve({ pico: 0n, limit: 0n })).kind, "reserved");
  assert.equal((await two.reserve({ pico: 1n, limit, day: DAY + 1 })).kind, "reserved");
  assert.ok(first.kind === "reserved");
  one.accounts.settle(first.reservation, -1n, []);
  await waitFor(async () => (await two.reserve({ pico: 1n, limit })).kind === "reserved");
});

test("tokens count for all gateways", { skip: findRedisSkip() }, async (t) => {
  const redis = await startRedis(t, await findFreePort(), makeFolder(t));
  const [one, two] = [openAccounts(redis.url, "one"), openAccounts(redis.url, "two")];
  t.after(() => {
    one.accounts.close();
    two.accounts.close();
  });
  const windows = [
    { key: "a", tokens: 60, limit: 100 },
    { key: "b", tokens: 60, limit: 1_000 },
  ];
  const taken = await one.reserve({ windows });
  const refused = await two.reserve({ windows });
  assert.ok(taken.kind === "reserved" && refused.kind === "no-tokens");
  assert.deepEqual([refused.window, refused.remaining], [0, 40]);
  assert.ok(refused.resetSeconds > 50 && refused.resetSeconds <= 62);
  one.accounts.settle(taken.reservation, 0n, [-50, -50]);
  await waitFor(async () => (await two.reserve({ windows })).kind === "reserved");
});

test(
  "a gateway that has restarted raises its sum, and never lowers it",
  { skip: findRedisSkip() },
  async (t) => {
    const redis = await startRedis(t, await findFreePort(), makeFolder(t));
    const client = new RedisClient({
      url: redis.url,
      onFailure: () => undefined,
      onRecovery: () => undefined,
    });
    t.after(() => client.close());
    await waitFor(() => client.isReady);
    const key = spentKey("raised", DAY);
    for (const [pico, known] of [
      ["5000000000000000001", "5000000000000000001"],
      ["5000000000000000000", "5000000000000000001"],
      ["5000000000000000002", "5000000000000000002"],
    ] as const) {
      await RAISE_SCRIPT.run(client, [key], ["one", pico]);
      assert.equal(await client.send("HGET", key, "one"), known);
    }
  },
);
