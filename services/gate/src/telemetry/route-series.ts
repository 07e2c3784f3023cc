// Requests, failures and response times by target over time.
import { SeriesStore, type Figure, type QuantileFigure } from "@platform/kernel/feeds";
import type { Clock } from "@platform/kernel/time";
import {
  LINK_TIME_BOUNDS_MS,
  LINK_TIMES,
  type LinkFigures,
  type RouteKey,
  type RouteSpec,
  type SharedLinkState,
} from "../shared-state/index.ts";
import type { RoutePlanner } from "../control/planner.ts";

/** Targets of one route whose series are kept. */
const ROUTE_TARGETS_MAX = 64;
/** Targets of all routes whose series are kept: 20 KB each, and 13 KB per route. Routes that come later have none. */
const TARGETS_MAX = 1_000;

/** Options of {@link RouteSeries}. */
export interface RouteSeriesOptions {
  planner: Pick<RoutePlanner, "version" | "listSpecs">;
  links: SharedLinkState;
  figures: LinkFigures;
  clock: Clock;
}

type Values = (number | null)[];

/** The series of a target. */
interface TargetSeries {
  url: string;
  /** Attempts per second. */
  requests: Values;
  /** Those that failed. */
  failures: Values;
  /** 99th percentile of the time to the response head in ms. */
  p99_ms: Values;
}

/** The series of a route. */
export interface RouteSeriesAnswer {
  /** Seconds between two points. */
  step: number;
  /** Time of the first point, epoch ms. */
  from: number;
  /** In the order of the route; empty if no series are kept. */
  targets: TargetSeries[];
  /** Percentiles of the time to the response head at all targets in ms. */
  p50_ms: Values;
  p99_ms: Values;
  /** Share of the canary in percent; absent without a canary. */
  canary?: Values;
}

interface FollowedRoute {
  /** Names the links and figures: others need another store. */
  shape: string;
  urls: readonly string[];
  hasCanary: boolean;
  store: SeriesStore;
}

/** Samples the routes each second. */
export class RouteSeries {
  readonly #options: RouteSeriesOptions;
  #routes = new Map<RouteKey, FollowedRoute>();
  #version = -1;

  constructor(options: RouteSeriesOptions) {
    this.#options = options;
  }

  /** Takes a sample; called once per second. */
  sample(): void {
    const { planner } = this.#options;
    if (planner.version !== this.#version) {
      this.#version = planner.version;
      this.#follow(planner.listSpecs());
    }
    for (const { store } of this.#routes.values()) store.sample();
  }

  /** Reads complete points from `fromMs` on; without `wanted`, with the smallest step that reaches back so far. */
  read(key: RouteKey, fromMs: number, wanted?: number): RouteSeriesAnswer {
    const route = this.#routes.get(key);
    if (route === undefined) {
      return { step: wanted ?? 1, from: fromMs, targets: [], p50_ms: [], p99_ms: [] };
    }
    const { store, urls, hasCanary } = route;
    const names = store.figures.map(({ name }) => name);
    const { step, from, series } = store.read(names, fromMs, wanted ?? store.chooseStep(fromMs));
    const byName = new Map(series.map(({ name, values }) => [name, values]));
    const targets = urls.map((url, index) => ({
      url,
      requests: byName.get(`requests ${index}`)!,
      failures: byName.get(`failures ${index}`)!,
      p99_ms: byName.get(`p99 ${index}`)!,
    }));
    const p50 = byName.get("p50")!;
    const p99 = byName.get("p99")!;
    const canary = hasCanary ? { canary: byName.get("canary")! } : {};
    return { step, from, targets, p50_ms: p50, p99_ms: p99, ...canary };
  }

  // Routes that are followed already go first: what they have does not depend on routes that come.
  #follow(specs: readonly RouteSpec[]): void {
    const before = this.#routes;
    const known = specs.filter(({ key }) => before.has(key));
    const added = specs.filter(({ key }) => !before.has(key));
    this.#routes = new Map();
    let count = 0;
    for (const spec of [...known, ...added]) {
      const { length } = spec.targets;
      if (length === 0 || length > ROUTE_TARGETS_MAX || count + length > TARGETS_MAX) continue;
      count += length;
      const kept = before.get(spec.key);
      const shape = describeShape(spec);
      this.#routes.set(spec.key, kept?.shape === shape ? kept : this.#create(spec, shape));
    }
  }

  #create(spec: RouteSpec, shape: string): FollowedRoute {
    const { links, figures: counts, clock } = this.#options;
    const { targets } = spec;
    const slots = targets.map(({ link }) => link);
    const readTimes = createTimes(slots, counts);
    const figures: Figure[] = [
      ...slots.flatMap((slot, index): Figure[] => [
        count(`requests ${index}`, () => counts.readAttempts(slot)),
        count(`failures ${index}`, () => counts.readFailures(slot)),
        quantile(`p99 ${index}`, 0.99, createTimes([slot], counts)),
      ]),
      quantile("p50", 0.5, readTimes),
      quantile("p99", 0.99, readTimes),
    ];
    const hasCanary = spec.resilience?.canary !== undefined;
    if (hasCanary) figures.push(createShare(spec, links));
    const urls = targets.map(({ url }) => url);
    return { shape, urls, hasCanary, store: new SeriesStore(figures, clock) };
  }
}

function describeShape({ targets, resilience }: RouteSpec): string {
  const links = targets.map(({ link, url, weight }) => `${link} ${url} ${weight}`).join("\n");
  return `${resilience?.canary === undefined ? "" : "canary\n"}${links}`;
}

function createTimes(slots: readonly number[], figures: LinkFigures): QuantileFigure["read"] {
  return () => {
    const counts = new Float64Array(LINK_TIMES);
    for (const slot of slots) figures.sumTimes(slot, counts);
    return { bounds: LINK_TIME_BOUNDS_MS, counts };
  };
}

function quantile(name: string, wanted: number, read: QuantileFigure["read"]): Figure {
  return { name, unit: "ms", title: name, kind: "quantile", quantile: wanted, read };
}

function count(name: string, read: () => number): Figure {
  return { name, unit: "1/s", title: name, kind: "counter", read };
}

// The canary is the last of two targets.
function createShare({ targets }: RouteSpec, links: SharedLinkState): Figure {
  const read = (): number => {
    const [stable = 0, canary = 0] = targets.map(
      ({ link, weight }) => links.readWeight(link) ?? weight,
    );
    return (100 * canary) / (stable + canary);
  };
  return { name: "canary", unit: "%", title: "canary", kind: "gauge", read };
}
