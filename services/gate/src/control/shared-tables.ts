// The tables of routing decisions in shared memory, and the planner that gives out their slots.
import { ROUTE_DRAIN_MS_MAX } from "../config/document.ts";
import {
  ActiveCounts,
  allocateSharedBuffers,
  ConcurrencyRows,
  LinkFigures,
  LINKS_MAX,
  readMonotonicMs,
  ROUTES_MAX,
  type SharedBuffers,
  SharedCache,
  SharedLinkState,
  SharedRouteState,
  SharedTargetState,
  TARGETS_MAX,
} from "../shared-state/index.ts";
import { RoutePlanner } from "./planner.ts";

/** Delay before a slot is reused; the streams of its removed route have ended by then. */
const SLOT_REUSE_DELAY_MS = ROUTE_DRAIN_MS_MAX + 10_000;

/** The control plane's view of the memory that it shares with the workers. */
export interface SharedTables {
  buffers: SharedBuffers;
  cache: SharedCache;
  active: ActiveCounts;
  targets: SharedTargetState;
  routes: SharedRouteState;
  links: SharedLinkState;
  figures: LinkFigures;
  planner: RoutePlanner;
  /** Milliseconds since the memory was allocated: the clock of times in it. */
  readSharedMs: () => number;
  /** Calls `listener` when another upstream gets a slot, after its state in shared memory was cleared. */
  onTargetReuse: (listener: (slot: number) => void) => void;
}

/** Options of {@link createSharedTables}. */
export interface SharedTablesOptions {
  workers: number;
  cacheBytes: number;
}

/** Allocates the memory of one gateway. A slot that the planner gives out again begins with cleared state. */
export function createSharedTables(options: SharedTablesOptions): SharedTables {
  let reuse = (_slot: number): void => undefined;
  const buffers = allocateSharedBuffers(options.workers, options.cacheBytes);
  const active = new ActiveCounts(buffers);
  const targets = new SharedTargetState(buffers.targets);
  const routes = new SharedRouteState(buffers.routes);
  const concurrency = new ConcurrencyRows(buffers.concurrency, buffers.workers, 0);
  const links = new SharedLinkState(buffers.links);
  const figures = new LinkFigures(buffers.figures);
  const planner = new RoutePlanner({
    routesMax: ROUTES_MAX,
    targetsMax: TARGETS_MAX,
    linksMax: LINKS_MAX,
    reuseDelayMs: SLOT_REUSE_DELAY_MS,
    readNowMs: readMonotonicMs,
    onRouteReuse: (slot) => {
      routes.clear(slot);
      concurrency.clear(slot);
    },
    onLinkReuse: (slot) => {
      links.clear(slot);
      figures.clear(slot);
    },
    onTargetReuse: (slot) => {
      targets.clear(slot);
      active.clear(slot);
      reuse(slot);
    },
  });
  return {
    buffers,
    cache: new SharedCache(buffers.cache, buffers.workers),
    active,
    targets,
    routes,
    links,
    figures,
    planner,
    readSharedMs: () => readMonotonicMs() - buffers.startedMs,
    onTargetReuse: (listener) => void (reuse = listener),
  };
}
