// The worker threads with the memory that they share, and the controller that changes their routes.
import { systemClock } from "@platform/kernel/time";
import type { GateConfig } from "../config/document.ts";
import { Controller } from "../control/controller.ts";
import { diffRoutes } from "../control/differ.ts";
import { MiddlewareStore } from "../control/middleware-store.ts";
import { createSharedTables, type SharedTables } from "../control/shared-tables.ts";
import { type Canaries, startCanaries } from "../resilience/canaries.ts";
import { HealthChecks } from "../resilience/health-checks.ts";
import { GateMetrics } from "../telemetry/gate-metrics.ts";
import { WorkerPools } from "../worker/worker-pools.ts";
import { type AiControl, openAi } from "./ai.ts";
import type { Base } from "./base.ts";

/** The parts. */
export interface Traffic {
  readonly tables: SharedTables;
  readonly pools: WorkerPools;
  readonly controller: Controller;
  readonly canaries: Canaries;
  readonly checks: HealthChecks;
  readonly metrics: GateMetrics;
  readonly middleware: MiddlewareStore;
  readonly ai: AiControl;
}

/** Creates the parts; the threads are not started. `loadConfig` reads the configuration again. */
export async function openTraffic(
  base: Base,
  workerEntry: URL,
  loadConfig: () => GateConfig,
): Promise<Traffic> {
  const { config, log, lifecycle, listeners, state, folder } = base;
  const tables = createSharedTables({ workers: base.sharing, cacheBytes: config.cache_size });
  const { cache, links, planner, targets, readSharedMs, active } = tables;
  const first = planner.plan(diffRoutes(new Map(), state.resolved));
  first.commit();
  const { admin } = base;
  const pools = new WorkerPools({
    entry: workerEntry,
    shared: tables.buffers,
    log,
    main: { ...describeMain(base), routes: first.upsert },
    admin: admin && listeners.admin && { address: listeners.admin, ...admin },
  });
  const middleware: MiddlewareStore = new MiddlewareStore({
    folder,
    isEphemeral: config.ephemeral,
    lock: base.lock,
    clock: systemClock,
    log,
    listRoutes: () => controller.state.routes.values(),
    runExclusive: (work) => controller.runExclusive(work),
    apply: (guests) => pools.apply({ guests, upsert: [], remove: [] }),
  });
  await middleware.load();
  const ai = await openAi(base, tables.buffers, {
    runExclusive: (work) => controller.runExclusive(work),
    apply: (budgets) => pools.apply({ budgets, upsert: [], remove: [] }),
    readGlobals: () => controller.state.globals,
  });
  const controller: Controller = createController(base, tables, pools, loadConfig, middleware);
  const metrics = new GateMetrics({
    listBlocks: () => pools.listMetrics(),
    planner,
    active,
    targets,
    countLiveWorkers: () => pools.countLive(),
    countRoutes: () => controller.state.routes.size,
    cache,
    readSharedMs,
  });
  tables.onTargetReuse((slot) => metrics.forgetTarget(slot));
  const isEphemeral = config.ephemeral;
  const routeStates = tables.routes;
  const canaries = await startCanaries({ planner, links, routeStates, folder, isEphemeral, log });
  lifecycle.onDrain("canaries", () => canaries.timer.stop());
  const checks = new HealthChecks({
    planner,
    targets,
    readNowMs: readSharedMs,
    log: (level, msg, fields) => log[level](msg, fields),
  });
  lifecycle.onDrain("health checks", () => checks.stop());
  return { tables, pools, controller, canaries, checks, metrics, middleware, ai };
}

function describeMain({ listeners, workers, state }: Base) {
  const { main: address, plain: plainAddress, local: localAddress } = listeners;
  return { address, plainAddress, localAddress, workers, globals: state.globals };
}

function createController(
  { state, store, networks, discovery, certificate, log, buildGlobals }: Base,
  { planner }: SharedTables,
  pools: WorkerPools,
  loadConfig: () => GateConfig,
  middleware: MiddlewareStore,
): Controller {
  return new Controller(
    {
      planner,
      store,
      networks,
      discovery,
      certificate,
      log,
      loadConfig,
      buildGlobals,
      apply: (change) => pools.apply(change),
      hasMiddleware: (reference) => middleware.has(reference),
    },
    state,
  );
}
