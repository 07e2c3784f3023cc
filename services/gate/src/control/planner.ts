// Assigns slots in shared memory to routes and upstreams, and releases them when they are no longer used.
import { PlatformError } from "@platform/kernel/errors";
import { type RouteKey, type RouteSpec, SlotTable } from "../shared-state/index.ts";
import type { RouteDiff } from "./differ.ts";

/** Options of {@link RoutePlanner}. */
export interface PlannerOptions {
  routesMax: number;
  targetsMax: number;
  linksMax: number;
  /** Delay before a released slot is reused; longer than the drain timeout of removed routes. */
  reuseDelayMs: number;
  readNowMs: () => number;
  onRouteReuse: (slot: number) => void;
  onTargetReuse: (slot: number) => void;
  onLinkReuse: (slot: number) => void;
}

/** A diff with assigned slots; it has no effect before {@link commit}. */
export interface PlannedChange {
  upsert: RouteSpec[];
  remove: RouteKey[];
  /** Commits the change and releases the slots of removed routes. */
  commit: () => void;
  /** Releases the slots that the change acquired. */
  rollBack: () => void;
}

/** A target used by a route. */
export interface UsedTarget {
  slot: number;
  url: string;
}

interface Held {
  spec: RouteSpec;
  targetKeys: string[];
}

/** Assigns the slots of one process. */
export class RoutePlanner {
  readonly #routeSlots: SlotTable;
  readonly #targetSlots: SlotTable;
  readonly #linkSlots: SlotTable;
  readonly #held = new Map<RouteKey, Held>();
  readonly #labels: MetricLabels;
  #version = 0;

  constructor(options: PlannerOptions) {
    const { reuseDelayMs, readNowMs } = options;
    this.#routeSlots = new SlotTable({
      slotsMax: options.routesMax,
      reuseDelayMs,
      readNowMs,
      onReuse: options.onRouteReuse,
    });
    this.#targetSlots = new SlotTable({
      slotsMax: options.targetsMax,
      reuseDelayMs,
      readNowMs,
      onReuse: options.onTargetReuse,
    });
    this.#linkSlots = new SlotTable({
      slotsMax: options.linksMax,
      reuseDelayMs,
      readNowMs,
      onReuse: options.onLinkReuse,
    });
    this.#labels = new MetricLabels(options.routesMax * 2);
  }

  /** Assigns slots to new and changed routes. Throws `insufficient_storage` if there are not enough. */
  plan(diff: RouteDiff): PlannedChange {
    const taken: { table: SlotTable; key: string }[] = [];
    const rollBack = (): void => {
      for (const { table, key } of taken.splice(0)) table.release(key);
    };
    const take = (table: SlotTable, key: string, what: string): number => {
      const slot = table.acquire(key);
      if (slot === undefined) {
        rollBack();
        throw new PlatformError(
          "insufficient_storage",
          `the maximum number of ${what}s is reached; removed ones count for some more minutes`,
        );
      }
      taken.push({ table, key });
      return slot;
    };
    const next: Held[] = [...diff.added, ...diff.updated].map((route) => ({
      targetKeys: route.targetKeys,
      spec: {
        ...route.spec,
        slot: take(this.#routeSlots, route.key, "route"),
        metricsId: this.#labels.findId(route.label),
        targets: route.spec.targets.map((target, index) => ({
          ...target,
          slot: take(this.#targetSlots, route.targetKeys[index] ?? target.url, "upstream"),
          link: take(this.#linkSlots, makeLinkKey(route.key, target.url), "target"),
        })),
      },
    }));
    return {
      upsert: next.map((held) => held.spec),
      remove: diff.removed,
      rollBack,
      commit: () => this.#commit(next, diff.removed),
    };
  }

  /** The spec of an active route; undefined if there is no such route. */
  findSpec(key: RouteKey): RouteSpec | undefined {
    return this.#held.get(key)?.spec;
  }

  /** Rises with each committed change. */
  get version(): number {
    return this.#version;
  }

  /** The specs of all active routes. */
  listSpecs(): RouteSpec[] {
    return Array.from(this.#held.values(), ({ spec }) => spec);
  }

  /** Lists every upstream once, with the first of its URLs. */
  listTargets(): UsedTarget[] {
    const bySlot = new Map<number, string>();
    for (const { spec } of this.#held.values()) {
      for (const target of spec.targets) {
        if (!bySlot.has(target.slot)) bySlot.set(target.slot, target.url);
      }
    }
    return [...bySlot].map(([slot, url]) => ({ slot, url }));
  }

  /** The label of a metrics ID. */
  findLabel(metricsId: number): string {
    return this.#labels.findLabel(metricsId);
  }

  #commit(next: readonly Held[], removed: readonly RouteKey[]): void {
    this.#version++;
    for (const held of next) {
      this.#release(held.spec.key);
      this.#held.set(held.spec.key, held);
    }
    for (const key of removed) {
      this.#release(key);
      this.#held.delete(key);
    }
  }

  #release(key: RouteKey): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    this.#routeSlots.release(key);
    for (const [index, target] of held.spec.targets.entries()) {
      this.#targetSlots.release(held.targetKeys[index] ?? target.url);
      this.#linkSlots.release(makeLinkKey(key, target.url));
    }
  }
}

// A target that only one route has: URLs of a route are distinct.
function makeLinkKey(route: RouteKey, url: string): string {
  return `${route} ${url}`;
}

const NO_ROUTE_LABEL = "none";
const OTHER_LABEL = "other";
const OTHER_ID = 1;

/** IDs of `route` labels: a label keeps its ID; labels beyond the maximum share one. */
class MetricLabels {
  readonly #idsMax: number;
  readonly #ids = new Map<string, number>();
  readonly #labels: string[] = [NO_ROUTE_LABEL, OTHER_LABEL];

  constructor(idsMax: number) {
    this.#idsMax = idsMax;
  }

  findId(label: string): number {
    const known = this.#ids.get(label);
    if (known !== undefined) return known;
    if (this.#labels.length >= this.#idsMax) return OTHER_ID;
    const id = this.#labels.length;
    this.#ids.set(label, id);
    this.#labels.push(label);
    return id;
  }

  findLabel(id: number): string {
    return this.#labels[id] ?? OTHER_LABEL;
  }
}
