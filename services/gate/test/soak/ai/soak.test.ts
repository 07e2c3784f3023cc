// Requests to models while providers die, prices reload, budgets run out and workers are killed: the sums of billing are those of
// the providers. Only a long form: PLATFORM_AI_SOAK_SECONDS=900.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@platform/testing/wait";
import { SignJWT } from "jose";
import { makeFolder, runtimes, startGate } from "../../fixture/gate-process.ts";
import { sampleProcess } from "../resources.ts";
import { waits } from "../scene.ts";
import { keepAsking, ROUTE_NAMES, RouteCounts, type RouteName, ROUTES } from "./load.ts";
import { MortalProvider, OUTPUT_TOKENS } from "./providers.ts";

const SECONDS = Number(process.env["PLATFORM_AI_SOAK_SECONDS"] ?? 0);
const skip = SECONDS > 0 ? false : "PLATFORM_AI_SOAK_SECONDS is not set";
const OPERATOR = "operator-token";
const SECRET = "a secret of at least thirty-two bytes for tokens";
const CLIENTS = 2;
const OPEN_FILES_SLACK = 40;
/** Requests of which nobody knows whether they went up: those that a worker took with it. */
const UNSURE_SHARE_MAX = 0.02;
const CRASH = new URL("../../fixture/thread-crash.ts", import.meta.url).href;

/** Prices of a turn: one of them changes, others come and go, and a typo is refused as a whole. */
function describePrices(turn: number): object {
  const perToken = (ROUTES.metered.usd / OUTPUT_TOKENS) * 1_000_000;
  return {
    flat: { input: 0, output: 0, request: ROUTES.flat.usd },
    metered: { input: 0, output: perToken },
    repriced: { input: 0, output: 0, request: turn % 2 === 0 ? ROUTES.repriced.usd : 0.01 },
    ...(turn % 3 === 0 ? { "other*": { input: 1, output: 2 } } : {}),
    ...(turn % 5 === 4 ? { wrong: { input: 1, outptu: 2 } } : {}),
  };
}

function describeGate(fragile: MortalProvider, patient: MortalProvider) {
  const brief = { open_ms: 200, max_open_ms: 500 };
  const common = { ai: true, strip_prefix: true, circuit_breaker: brief };
  const one = (name: RouteName, { url }: MortalProvider) => ({
    prefix: `/${name}`,
    target: url,
    ...common,
  });
  const llm_routing = {
    primary: { url: fragile.url, model: "flat" },
    fallback: { url: patient.url, model: "flat" },
  };
  const routes = [
    one("flat", fragile),
    one("metered", patient),
    one("repriced", patient),
    { prefix: "/fallback", llm_routing, strip_prefix: true },
    one("poor", fragile),
  ];
  return (turn: number) => ({
    addr: "127.0.0.1:0",
    workers: 2,
    auth_token: OPERATOR,
    jwt_secret: SECRET,
    ai_prices: describePrices(turn),
    routes,
  });
}

async function prepare(context: TestContext) {
  const [fragile, patient] = [await MortalProvider.start(false), await MortalProvider.start(true)];
  for (const provider of [fragile, patient]) context.after(() => provider.stop());
  const describe = describeGate(fragile, patient);
  const folder = makeFolder(context);
  const gate = await startGate(context, {
    runtime: runtimes[0]!,
    folder,
    config: describe(0),
    env: { NODE_OPTIONS: `--import ${CRASH}` },
  });
  return { fragile, patient, describe, folder, gate };
}

type Stage = Awaited<ReturnType<typeof prepare>>;

interface Budget {
  tenant_id: string;
  max_cost_per_day_usd: number | null;
  spent_today_usd: number;
  reserved_usd: number;
}

async function call(url: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const headers = { authorization: `Bearer ${OPERATOR}`, "content-type": "application/json" };
  const sent = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const ask = (): Promise<Response> => fetch(`${url}/api/v1/admin/${path}`, { headers, ...sent });
  // A worker that is killed takes its connections with it; none of the calls does more the second time.
  const answer = await ask().catch(ask);
  assert.equal(answer.status, 200, await answer.clone().text());
  return (await answer.json()) as Record<string, unknown>;
}

function sign(tenant: string): Promise<string> {
  return new SignJWT({ tenant })
    .setProtectedHeader({ alg: "HS256" })
    .setSubject(tenant)
    .setExpirationTime("2h")
    .sign(Buffer.from(SECRET));
}

/** Sets the budget of the poor tenant. */
async function give(url: string, cents: number): Promise<void> {
  await call(url, "ai-billing", { tenant_id: "poor", max_cost_per_day_usd: cents / 100 });
}

/** Gives the poor tenant some more money again and again; it never spends more than it has. */
async function feed(url: string, over: AbortSignal): Promise<void> {
  for (let cents = 10; await waits(3_000, over); cents += 10) {
    const usd = cents / 100;
    const { budgets } = (await call(url, "ai-billing")) as { budgets: Budget[] };
    const [budget] = budgets as [Budget];
    await give(url, cents + 10);
    // Hundredths of a USD in binary fractions.
    assert.ok(budget.spent_today_usd + budget.reserved_usd <= usd + 1e-9, JSON.stringify(budget));
  }
}

async function keepReloading({ gate, folder, describe }: Stage, over: AbortSignal): Promise<void> {
  for (let turn = 1; await waits(2_000, over); turn++) {
    writeFileSync(join(folder, "gate.json"), JSON.stringify(describe(turn)));
    gate.signal("SIGHUP");
  }
}

async function keepDying(
  provider: MortalProvider,
  everyMs: number,
  over: AbortSignal,
): Promise<void> {
  while (await waits(everyMs, over)) await provider.die(600);
}

async function killWorkers({ gate }: Stage, over: AbortSignal): Promise<number> {
  let killed = 0;
  for (; await waits(15_000, over); killed++) gate.signal("SIGUSR2");
  return killed;
}

/** Runs load and faults for the time. */
async function run(stage: Stage, counts: Record<RouteName, RouteCounts>): Promise<number> {
  const { gate, fragile, patient } = stage;
  const end = new AbortController();
  const over = end.signal;
  const tokens = { rich: await sign("rich"), poor: await sign("poor") };
  const clients = ROUTE_NAMES.flatMap((route) =>
    Array.from({ length: CLIENTS }, (_, client) => {
      const token = route === "poor" ? tokens.poor : tokens.rich;
      return keepAsking({ url: gate.url, route, client, token, counts: counts[route], over });
    }),
  );
  const kills = killWorkers(stage, over);
  const faults = Promise.all([
    feed(gate.url, over),
    keepReloading(stage, over),
    keepDying(fragile, 3_000, over),
    keepDying(patient, 7_000, over),
    kills,
  ]);
  const ended = gate.ended.then(({ stderr }) => assert.fail(`it ended: ${stderr}`));
  await Promise.race([sleep(SECONDS * 1_000), faults, ended]).finally(() => end.abort());
  await Promise.race([Promise.all([faults, ...clients]), ended]);
  return kills;
}

/** Least and most that a route may have cost, in hundredths of a USD. */
function expect(stage: Stage, route: RouteName, { whole, unsure: open, namedCents }: RouteCounts) {
  const isOwn = (prompt: string): boolean => prompt.startsWith(`${route} `);
  const received = [stage.fragile, stage.patient].flatMap((provider) =>
    [...provider.listReceived()].filter(isOwn),
  );
  const known = new Set(received);
  const cents = Math.round(ROUTES[route].usd * 100);
  const lost = [...open].filter((prompt) => !known.has(prompt)).length;
  if (route === "repriced") {
    const cut = received.filter((prompt) => !whole.has(prompt)).length;
    return { least: namedCents + cut, most: namedCents + (cut + lost) * cents, unsure: cut + lost };
  }
  // Both attempts of a fallback are paid.
  return { least: received.length * cents, most: (received.length + lost) * cents, unsure: lost };
}

async function readCents(url: string): Promise<{ routes: Map<string, number>; total: number }> {
  const toCents = (usd: number): number => Math.round(usd * 1e6) / 1e4;
  const { routes } = (await call(url, "ai-cost-attribution")) as {
    routes: { prefix: string; total_cost_usd: number }[];
  };
  const { total_cost_usd: total } = (await call(url, "ai-billing")) as { total_cost_usd: number };
  return {
    routes: new Map(routes.map(({ prefix, total_cost_usd: usd }) => [prefix, toCents(usd)])),
    total: toCents(total),
  };
}

test(
  "through dead providers, new prices, empty budgets and killed workers, billing has the sums of the providers",
  { skip, timeout: SECONDS * 1_000 + 240_000 },
  async (context) => {
    const stage = await prepare(context);
    const { gate, fragile, patient } = stage;
    const counts = Object.fromEntries(
      ROUTE_NAMES.map((route) => [route, new RouteCounts()]),
    ) as Record<RouteName, RouteCounts>;
    await sleep(1_000);
    const first = sampleProcess(gate.pid);
    await give(gate.url, 10);
    const killed = await run(stage, counts);
    await waitFor(async () => {
      const { budgets } = (await call(gate.url, "ai-billing")) as { budgets: Budget[] };
      return budgets.every(({ reserved_usd: usd }) => usd === 0);
    }, "the end of all requests");
    const billed = await readCents(gate.url);
    const expected = ROUTE_NAMES.map((route) => ({
      route,
      billed: billed.routes.get(`/${route}`) ?? 0,
      ...expect(stage, route, counts[route]),
      outcomes: counts[route].outcomes,
    }));
    const deaths = [fragile.deaths, patient.deaths];
    const reloads = ["configuration reloaded", "reload refused"].map(
      (start) => gate.lines().filter(({ msg }) => msg.startsWith(start)).length,
    );
    const last = sampleProcess(gate.pid);
    context.diagnostic(JSON.stringify({ expected, total: billed.total, deaths, reloads, killed }));
    for (const { route, billed: cents, least, most, unsure, outcomes } of expected) {
      assert.ok(cents >= least && cents <= most, `${route}: ${least} ≤ ${cents} ≤ ${most}`);
      const asked = Object.values(outcomes).reduce((sum, count) => sum + count, 0);
      assert.ok(unsure <= Math.max(5, asked * UNSURE_SHARE_MAX), `${route}: ${unsure} of ${asked}`);
      assert.ok((outcomes["whole"] ?? 0) > asked / 20, `${route}: ${JSON.stringify(outcomes)}`);
    }
    const sum = [...billed.routes.values()].reduce((all, cents) => all + cents, 0);
    assert.equal(Math.round(sum * 1e4), Math.round(billed.total * 1e4), "routes and tenants");
    assert.ok((counts.poor.outcomes["insufficient_quota"] ?? 0) > 0, "a budget that ran out");
    for (const count of [...deaths, ...reloads, killed]) assert.ok(count > 0);
    assert.ok(last.openFiles <= first.openFiles + OPEN_FILES_SLACK, `${last.openFiles} files`);
  },
);
