// All cases of the gateway, in the order in which they run and are reported.
import type { BenchCase } from "../harness/case.ts";
import { cacheHit } from "./cases/cache-hit.ts";
import { floor } from "./cases/floor.ts";
import { guardedGet, limitedGet } from "./cases/guarded-get.ts";
import { guestGet } from "./cases/guest-get.ts";
import { idleMemory } from "./cases/idle-memory.ts";
import { largeBody } from "./cases/large-body.ts";
import { latency } from "./cases/latency.ts";
import { manyRoutes } from "./cases/many-routes.ts";
import { engineProfile, profile } from "./cases/profile.ts";
import { modelBurst, modelLatency, modelStream } from "./cases/model-stream.ts";
import { reload } from "./cases/reload.ts";
import { smallGet } from "./cases/small-get.ts";
import { twoWorkers } from "./cases/two-workers.ts";

export const GATE_CASES: readonly BenchCase[] = [
  smallGet,
  guardedGet,
  limitedGet,
  guestGet,
  modelStream,
  modelBurst,
  modelLatency,
  cacheHit,
  largeBody,
  manyRoutes,
  twoWorkers,
  latency,
  reload,
  idleMemory,
  floor,
  profile,
  engineProfile,
];
