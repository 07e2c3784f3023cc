// Requests and failures by target over time, of routes with several targets.
import { SeriesStore, type Figure } from "@platform/kernel/feeds";
import type { Clock } from "@platform/kernel/time";
import type { RouteKey, RouteSpec, SharedLinkState } from "../shared-state/index.ts";
import type { RoutePlanner } from "./planner.ts";

/** Targets of one route whose series are kept. */
const ROUTE_TARGETS_MAX = 64;
/** Targets of all routes whose series are kept: 27 KB each. Beyond it, routes that come later have none. */
const TARGETS_MAX = 1_000;

/** Options of {@link RouteSeries}. */
export interface RouteSeriesOptions {
  planner: Pick<RoutePlanner, "version" | "listSpecs">;
  links: SharedLinkState;
  clock: Clock;
}

/** The series of a route. */
export interface RouteSeriesAnswer {
  /** Seconds between two points. */
  step: number;
  /** Time of the first point, epoch ms. */
  from: number;
  /** In the order of the route; empty if no series are kept. Attempts per second, and those that failed. */
  targets: { url: string; requests: (number | null)[]; failures: (number | null)[] }[];
  /** Share of the canary in percent; absent without a canary. */
  canary?: (number | null)[];
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
    if (route === undefined) return { step: wanted ?? 1, from: fromMs, targets: [] };
    const { store, urls, hasCanary } = route;
    const names = store.figures.map(({ name }) => name);
    const { step, from, series } = store.read(names, fromMs, wanted ?? store.chooseStep(fromMs));
    const targets = urls.map((url, index) => ({
      url,
      requests: series[2 * index]!.values,
      failures: series[2 * index + 1]!.values,
    }));
    return { step, from, targets, ...(hasCanary ? { canary: series.at(-1)!.values } : {}) };
  }

  // Routes that are followed already go first: what they have does not depend on routes that come.
  #follow(specs: readonly RouteSpec[]): void {
    const before = this.#routes;
    const shared = specs.filter(({ targets: { length } }) => length > 1);
    const known = shared.filter(({ key }) => before.has(key));
    const added = shared.filter(({ key }) => !before.has(key));
    this.#routes = new Map();
    let count = 0;
    for (const spec of [...known, ...added]) {
      const { length } = spec.targets;
      if (length > ROUTE_TARGETS_MAX || count + length > TARGETS_MAX) continue;
      count += length;
      const kept = before.get(spec.key);
      const shape = describeShape(spec);
      this.#routes.set(spec.key, kept?.shape === shape ? kept : this.#create(spec, shape));
    }
  }

  #create(spec: RouteSpec, shape: string): FollowedRoute {
    const { links, clock } = this.#options;
    const { targets } = spec;
    const figures = targets.flatMap(({ link }, index): Figure[] => [
      count(`requests ${index}`, () => links.readAttempts(link)),
      count(`failures ${index}`, () => links.readFailures(link)),
    ]);
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
