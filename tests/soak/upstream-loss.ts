// Upstreams are killed and restarted in turn under load: clients must not be affected.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { startRequests } from "../stage/load.ts";
import { Stage, type StagedUpstream } from "../stage/stage.ts";

const CLIENTS = 16;
const ALIVE_MS = 1_000;
const DEAD_MS = 800;

/** Result of a run. */
export interface UpstreamLossFigures {
  requests: number;
  kills: number;
}

/**
 * Two targets behind one route are killed with SIGKILL and restarted in turn; one is always running. Throws if a GET
 * receives anything but 200.
 */
export async function soakUpstreamLoss(
  seconds: number,
  env: Record<string, string> = {},
): Promise<UpstreamLossFigures> {
  await using stage = new Stage();
  const upstreams: StagedUpstream[] = [
    await stage.startUpstream("first"),
    await stage.startUpstream("second"),
  ];
  const targets = upstreams.map((upstream) => upstream.url);
  const gateway = await stage.startGateway([{ prefix: "/", targets }], { workers: 2 }, env);
  const load = startRequests(gateway.url, "/short", CLIENTS);
  const deadline = Date.now() + seconds * 1000;
  let kills = 0;
  // Each at least once: a busy machine takes longer than the time.
  while (Date.now() < deadline || kills < upstreams.length) {
    await sleep(ALIVE_MS);
    const turn = kills % upstreams.length;
    const victim = upstreams[turn];
    if (victim === undefined) break;
    kills += 1;
    victim.process.kill("SIGKILL");
    await sleep(DEAD_MS);
    upstreams[turn] = await stage.startUpstream(victim.process.name, victim.port);
  }
  const tally = await load.stop();
  assert.deepEqual(tally.failures, []);
  assert.ok(tally.completed > 0);
  return { requests: tally.completed, kills };
}
