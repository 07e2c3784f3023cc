// Connects the canary engine with the active routes and with the state in shared memory.
import { join } from "node:path";
import type { Logger } from "@platform/kernel/log";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import {
  readMonotonicMs,
  type RouteSpec,
  type SharedLinkState,
  type SharedRouteState,
} from "../shared-state/index.ts";
import {
  CanaryEngine,
  type CanaryRoute,
  type CanaryStates,
  canaryStatesSchema,
} from "./canary-engine.ts";
import type { RoutePlanner } from "../control/planner.ts";
import { createEphemeralState, createStateFile } from "../access/state-file.ts";

const TICK_MS = 1_000;
const FULL = 100;
/** Units of effective weights per percent, if it is not whole: rounded to percents, a small canary would get nothing. */
const FRACTIONS = 100;
const FILE_NAME = "canaries.json";

/** Options of {@link startCanaries}. */
export interface CanariesOptions {
  planner: RoutePlanner;
  links: SharedLinkState;
  routeStates: SharedRouteState;
  /** Folder of the gateway's state. */
  folder: string;
  /** Keep changes in memory only. */
  isEphemeral: boolean;
  log: Logger;
}

/** The running engine. */
export interface Canaries {
  engine: CanaryEngine;
  timer: RepeatingTimer;
}

/** Starts the engine with the stored states. Rejects if they are damaged. */
export async function startCanaries(options: CanariesOptions): Promise<Canaries> {
  const { planner, log } = options;
  const warn = (fault: string): void => log.warn("state repaired", { fault });
  const onRepair = options.isEphemeral ? undefined : warn;
  const file = createStateFile(join(options.folder, FILE_NAME), canaryStatesSchema, onRepair);
  const state = options.isEphemeral ? createEphemeralState(file) : file;
  let writing = Promise.resolve();
  const store = (states: CanaryStates): void => {
    writing = writing
      .then(() => state.write(states))
      .catch((error: unknown) => {
        log.error("cannot store the state of canaries", { error: String(error) });
      });
  };
  const engine = new CanaryEngine({
    readNowMs: readMonotonicMs,
    readTimeMs: Date.now,
    stored: (await state.read()) ?? {},
    store,
    log: (level, msg, fields) => log[level](msg, fields),
  });
  let version = -1;
  const tick = (): void => {
    if (planner.version !== version) {
      version = planner.version;
      engine.follow(planner.listSpecs().flatMap((spec) => describeCanary(spec, options)));
    }
    engine.tick();
  };
  tick();
  const onError = (error: unknown): void =>
    log.error("the canary engine failed", { error: String(error) });
  return { engine, timer: every(TICK_MS, tick, onError) };
}

function describeCanary(spec: RouteSpec, options: CanariesOptions): CanaryRoute[] {
  const [stable, canary] = spec.targets;
  const settings = spec.resilience?.canary;
  if (settings === undefined || stable === undefined || canary === undefined) return [];
  const { links, routeStates } = options;
  return [
    {
      key: spec.key,
      label: spec.prefix,
      spec: settings,
      weights: [stable.weight, canary.weight],
      readCounts: () => links.readCanary(canary.link),
      restartWindow: () => links.restartCanary(canary.link),
      setWeight: (percent) => {
        const units = Number.isInteger(percent) ? 1 : FRACTIONS;
        const share = Math.round(percent * units);
        links.setWeight(stable.link, FULL * units - share);
        links.setWeight(canary.link, share);
        routeStates.changeWeights(spec.slot);
      },
    },
  ];
}
