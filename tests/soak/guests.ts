// WebAssembly guests that trap, run out of fuel and grow, beside good ones.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { assemble, type GuestText, writeGuest } from "@platform/testing/guests";
import { Pool } from "undici";
import { Stage, type StagedGateway } from "../stage/stage.ts";
import { type Holdings, readRssMib, readSettledHoldings } from "./mixed-load.ts";

const GOOD_CLIENTS = 4;
const PAUSE_MS = 2;
const BAD_PAUSE_MS = 20;
const SAMPLES_MAX = 1_000_000;
/** A pair of phases of equal length: alone and beside the others. */
const PAIR_SECONDS = 4;
const RSS_EVERY_MS = 1_000;
const P99_GROWTH_MAX = 1.2;
/** Growth from the middle to the last third of a run. */
const RSS_GROWTH_MAX = 1.1;
const RSS_SLACK_MIB = 8;
/** Quartiles of the p99 alone that are further apart than that are those of a machine with other work. */
const STEADY_MAX = 1.5;

const data = { 0: "x-guest", 16: "set" };
const GUESTS: Readonly<Record<string, GuestText>> = {
  good: {
    data,
    request: `(call $set_header_value (i32.const 0) (i32.const 0) (i32.const 7) (i32.const 16) (i32.const 3))
      (i64.const 1)`,
    response: `(call $set_header_value (i32.const 1) (i32.const 0) (i32.const 7) (i32.const 16) (i32.const 3))`,
  },
  traps: { request: "unreachable" },
  "traps-late": { response: "unreachable" },
  fuel: { request: "(loop $l (br $l)) (i64.const 1)" },
  // Its instances are dropped, and it fails when the memory ends.
  grows: {
    request:
      "(if (i32.eq (memory.grow (i32.const 40)) (i32.const -1)) (then unreachable)) (i64.const 1)",
  },
};

/** Median and quartiles of the phases. */
interface Spread {
  median: number;
  low: number;
  high: number;
  phases: number;
}

/** Result of a run. */
export interface GuestSoakFigures {
  good: number;
  bad: number;
  failures: number;
  /** p99 of all requests in either kind of phase. */
  p99AloneMs: number;
  p99BesideMs: number;
  /** Median and quartiles of beside ÷ alone, each of one pair's p99. */
  growth: Spread;
  /** The p99 of the phases alone, in ms: how steady the machine is. */
  alone: Spread;
  before: Holdings;
  after: Holdings;
  /** Smallest resident memory in each third of the run; empty if it was too short. */
  rssFloorsMib: number[];
}

/**
 * The good guest alone and beside the others, in pairs of short phases whose order changes: what else the machine does slows
 * down both of a pair, and is in neither kind more often. Throws if a request of the good guest does not get 200 with its
 * field, or a request of a bad one is answered by the upstream unless its guest has passed it.
 */
export async function soakGuests(
  seconds: number,
  env: Record<string, string> = {},
): Promise<GuestSoakFigures> {
  await using stage = new Stage();
  const upstream = await stage.startUpstream("guests");
  const names = Object.keys(GUESTS);
  const gateway = await stage.startGateway(
    names.map((name) => ({
      prefix: `/${name}`,
      strip_prefix: true,
      target: upstream.url,
      middleware: name,
      response_middleware: name,
    })),
    { workers: 2, upstream_keep_alive_timeout_ms: 1_000 },
    env,
  );
  for (const name of names) await register(gateway, name);
  const bad = names.filter((name) => name !== "good");
  await pass(gateway, bad, Math.min(20, seconds / 3));
  const before = await readSettledHoldings(gateway);
  const rss: number[] = [];
  const sampler = setInterval(() => rss.push(readRssMib(gateway.process.pid)), RSS_EVERY_MS);
  const { alone, beside, ratios, p99sAlone, ...counts } = await passInPairs(gateway, bad, seconds);
  clearInterval(sampler);
  const after = await readSettledHoldings(gateway);
  return {
    good: alone.length + beside.length,
    ...counts,
    p99AloneMs: readP99(alone),
    p99BesideMs: readP99(beside),
    growth: describeSpread(ratios),
    alone: describeSpread(p99sAlone),
    before,
    after,
    rssFloorsMib: readFloors(rss),
  };
}

/** Times of the good guest's requests in both kinds of phases, and the growth of their p99 in each pair. */
async function passInPairs(gateway: StagedGateway, bad: readonly string[], seconds: number) {
  const pairs = Math.max(1, Math.floor(seconds / PAIR_SECONDS));
  const alone: number[] = [];
  const beside: number[] = [];
  const ratios: number[] = [];
  const p99sAlone: number[] = [];
  const counts = { bad: 0, failures: 0 };
  for (let pair = 0; pair < pairs; pair++) {
    const phases = pair % 2 === 0 ? [[], bad] : [bad, []];
    const p99Ms = { alone: 0, beside: 0 };
    for (const others of phases) {
      const { good, ...rest } = await pass(gateway, others, seconds / pairs / 2);
      const isAlone = others.length === 0;
      p99Ms[isAlone ? "alone" : "beside"] = readP99(good);
      for (const ms of good) (isAlone ? alone : beside).push(ms);
      counts.bad += rest.bad;
      counts.failures += rest.failures;
    }
    ratios.push(p99Ms.beside / p99Ms.alone);
    p99sAlone.push(p99Ms.alone);
  }
  return { alone, beside, ratios, p99sAlone, ...counts };
}

/** The smallest value of each third: dropped instances stay in memory until it is collected. */
function readFloors(samples: readonly number[]): number[] {
  const size = Math.floor(samples.length / 3);
  if (size === 0) return [];
  return [0, 1, 2].map((third) =>
    Math.round(Math.min(...samples.slice(third * size, (third + 1) * size))),
  );
}

/**
 * Throws if memory still grew in the last third of the run. The heaps of the workers, which `/metrics` does not include, grow
 * to the size that the load needs in the first minutes: a leak is growth that does not end.
 */
export function assertLevel({ rssFloorsMib }: GuestSoakFigures): void {
  const [, middle, last] = rssFloorsMib;
  assert.ok(middle !== undefined && last !== undefined, "The run was too short to judge memory.");
  assert.ok(
    last <= middle * RSS_GROWTH_MAX + RSS_SLACK_MIB,
    `Resident memory grew from ${middle} to ${last} MiB in the last third.`,
  );
}

/**
 * Throws if the good guest was slower beside the bad ones in most pairs, or in all requests together. The latter tells of rare
 * harm, but a few slow seconds of a busy machine decide about it: it counts only if the phases alone were steady.
 */
export function assertUnharmed(figures: GuestSoakFigures): void {
  const { p99AloneMs, p99BesideMs, growth, alone } = figures;
  assert.ok(
    growth.median <= P99_GROWTH_MAX,
    `p99 beside the others is ${growth.median} (${growth.low} to ${growth.high}) of alone`,
  );
  if (alone.high > alone.low * STEADY_MAX) {
    console.log("The machine was not steady: the p99 of all requests together is not judged.");
    return;
  }
  assert.ok(
    p99BesideMs <= p99AloneMs * P99_GROWTH_MAX,
    `p99 ${p99AloneMs} ms alone, ${p99BesideMs} ms beside the others`,
  );
}

async function register({ url }: StagedGateway, name: string): Promise<void> {
  const answer = await fetch(`${url}/api/v1/admin/middleware/${name}`, {
    method: "POST",
    body: Buffer.from(assemble(writeGuest(GUESTS[name]))),
  });
  assert.equal(answer.status, 200, await answer.text());
}

/** Times of the good guest's requests, and numbers of those of the bad ones. */
async function pass(
  { url }: StagedGateway,
  bad: readonly string[],
  seconds: number,
): Promise<{ good: number[]; bad: number; failures: number }> {
  const endMs = performance.now() + seconds * 1_000;
  const pool = new Pool(url, { connections: GOOD_CLIENTS + bad.length });
  const good: number[] = [];
  const counts = { bad: 0, failures: 0 };
  const askGood = async (): Promise<void> => {
    while (performance.now() < endMs) {
      const startedMs = performance.now();
      const { statusCode, headers, body } = await pool.request({
        path: "/good/short",
        method: "GET",
      });
      await body.dump();
      assert.deepEqual([statusCode, headers["x-guest"]], [200, "set"]);
      if (good.length < SAMPLES_MAX) good.push(performance.now() - startedMs);
      await sleep(PAUSE_MS);
    }
  };
  const askBad = async (name: string): Promise<void> => {
    while (performance.now() < endMs) {
      const { statusCode, body } = await pool.request({ path: `/${name}/short`, method: "GET" });
      const text = await body.text();
      counts.bad++;
      if (statusCode !== 200) counts.failures++;
      if (statusCode === 200) assert.equal(name, "grows");
      else assert.match(text, /middleware_failed/);
      await sleep(BAD_PAUSE_MS);
    }
  };
  await Promise.all([
    ...Array.from({ length: GOOD_CLIENTS }, askGood),
    ...bad.map((name) => askBad(name)),
  ]);
  await pool.close();
  return { good, ...counts };
}

function readP99(times: readonly number[]): number {
  return readQuantile(times, 0.99);
}

function describeSpread(values: readonly number[]): Spread {
  const [low, median, high] = [0.25, 0.5, 0.75].map((share) => readQuantile(values, share));
  return { median: median!, low: low!, high: high!, phases: values.length };
}

function readQuantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 1_000) / 1_000;
}
