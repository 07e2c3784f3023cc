// The faults: dying upstreams, a Redis that restarts, rotated keys, reloads.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { killRedis, startRedis } from "@platform/redis/testing";
import type { OidcIssuer } from "../fixture/oidc-issuer.ts";
import { type Scene, waits } from "./scene.ts";
import type { Outages } from "./tally.ts";
import type { MortalUpstream } from "./upstream.ts";

const RELOAD_EVERY_MS = 1_000;
/** One reload in so many is refused, one in so many comes by signal. */
const BROKEN_EVERY = 5;
const SIGNAL_EVERY = 3;
/** Longer than the gateway waits between two requests for keys (10 s). */
const KEY_ANNOUNCED_MS = 12_500;
const KEY_SETTLED_MS = 5_000;
const OUTAGE_MS = 1_000;
const REDIS_UP_MS = 5_000;
const RETURN_MS_MAX = 60_000;
const RETURN_EVERY_MS = 100;
const RELOAD_MS_MAX = 60_000;

/** Numbers of faults so far. */
export class FaultCounts {
  redisRestarts = 0;
  rotations = 0;
  readonly reloads = { applied: 0, refused: 0, signals: 0 };
}

type RedisProcess = Awaited<ReturnType<typeof startRedis>>;

/** Kills the upstreams in turn and starts them again. */
export async function killInTurn(
  upstreams: readonly MortalUpstream[],
  outages: Outages,
  everyMs: number,
  over: AbortSignal,
): Promise<void> {
  for (let turn = 0; await waits(everyMs, over); turn++) {
    const victim = upstreams[turn % upstreams.length]!;
    outages.begin();
    await victim.kill();
    await sleep(OUTAGE_MS);
    const before = victim.requests;
    await victim.revive();
    outages.end();
    await waitUntilUsed(victim, before, over);
  }
}

/**
 * Waits until the gateway sends requests to a revived upstream. Without this, a busy machine would lose the second of a
 * pair while the first is not known to be back, and that there is no response then is right.
 */
async function waitUntilUsed(
  upstream: MortalUpstream,
  requestsBefore: number,
  over: AbortSignal,
): Promise<void> {
  const deadlineMs = performance.now() + RETURN_MS_MAX;
  while (upstream.requests === requestsBefore) {
    assert.ok(performance.now() < deadlineMs, "the gateway does not return to a revived upstream");
    if (!(await waits(RETURN_EVERY_MS, over))) return;
  }
}

/** Announces keys, uses them later, and keeps the previous one: as providers do. They are down at times, too. */
export async function rotateKeys(
  issuer: OidcIssuer,
  counts: FaultCounts,
  over: AbortSignal,
): Promise<void> {
  issuer.announceKey();
  while (await waits(KEY_ANNOUNCED_MS, over)) {
    issuer.rotate(1);
    counts.rotations++;
    // A gateway that was too busy to read the announced key needs the provider now.
    if (!(await waits(KEY_SETTLED_MS, over))) break;
    const { port } = issuer;
    await issuer.stop();
    await sleep(OUTAGE_MS);
    await issuer.listen(port);
    issuer.announceKey();
  }
}

/** Changes the configuration and reloads it each second; some changes are invalid. */
export async function keepReloading(
  scene: Scene,
  path: string,
  describe: (turn: number) => object,
  signal: () => void,
  { reloads: counts }: FaultCounts,
): Promise<void> {
  for (let turn = 1; await waits(RELOAD_EVERY_MS, scene.over); turn++) {
    const isBroken = turn % BROKEN_EVERY === 0;
    writeFileSync(path, isBroken ? '{"routes": [{"prefix": ' : JSON.stringify(describe(turn)));
    if (turn % SIGNAL_EVERY === 0) {
      signal();
      counts.signals++;
      continue;
    }
    const { status } = await fetch(`${scene.url}/api/v1/admin/reload`, {
      method: "POST",
      signal: AbortSignal.timeout(RELOAD_MS_MAX),
    });
    assert.equal(status, isBroken ? 400 : 200);
    if (isBroken) counts.refused++;
    else counts.applied++;
  }
}

/** Restarts Redis, which loses its counts. */
export async function keepRestarting(
  context: TestContext,
  redis: RedisProcess,
  counts: FaultCounts,
  over: AbortSignal,
): Promise<void> {
  for (let running = redis; await waits(REDIS_UP_MS, over); counts.redisRestarts++) {
    await killRedis(running);
    await sleep(OUTAGE_MS);
    running = await startRedis(context, running.port);
  }
}
