// Gives routes and upstreams their cells in shared memory, and takes them back when nothing uses them any more.
import { PlatformError } from "@platform/kernel/errors";
import { type RouteKey, type RouteSpec, SlotTable } from "../shared-state/index.ts";
import type { RouteDiff } from "./differ.ts";

/** How many cells there are and how they are made ready for another owner. */
export interface PlannerOptions {
  routesMax: number;
  targetsMax: number;
  /** How long a released cell rests; longer than any stream of a removed route may live. */
  restMs: number;
  readNowMs: () => number;
  onRouteReuse: (slot: number) => void;
  onTargetReuse: (slot: number) => void;
}

/** A diff with its cells assigned; nothing of it is in force before {@link commit}. */
export interface PlannedChange {
  upsert: RouteSpec[];
  remove: RouteKey[];
  /** Makes the change the planner's own: cells of what is gone begin to rest. */
  commit: () => void;
  /** Gives back what the change took. */
  rollBack: () => void;
}

/** A target that some route uses. */
export interface UsedTarget {
  slot: number;
  url: string;
}

interface Held {
  spec: RouteSpec;
  targetKeys: string[];
}

/** The planner of one process. */
export class RoutePlanner {
  readonly #routeSlots: SlotTable;
  readonly #targetSlots: SlotTable;
  readonly #held = new Map<RouteKey, Held>();
  readonly #labels: MetricLabels;

  constructor(options: PlannerOptions) {
    const { restMs, readNowMs } = options;
    this.#routeSlots = new SlotTable({
      slotsMax: options.routesMax,
      restMs,
      readNowMs,
      onReuse: options.onRouteReuse,
    });
    this.#targetSlots = new SlotTable({
      slotsMax: options.targetsMax,
      restMs,
      readNowMs,
      onReuse: options.onTargetReuse,
    });
    this.#labels = new MetricLabels(options.routesMax * 2);
  }

  /** Assigns cells to what is new or changed. Throws `insufficient_storage` where there are none left. */
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
          `there is no room for another ${what}; cells of removed ones become free after some minutes`,
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

  /** The cells of the route in force; undefined where there is no such route. */
  findSpec(key: RouteKey): RouteSpec | undefined {
    return this.#held.get(key)?.spec;
  }

  /** Every upstream in force once, with the first URL that leads there. */
  listTargets(): UsedTarget[] {
    const bySlot = new Map<number, string>();
    for (const { spec } of this.#held.values()) {
      for (const target of spec.targets) {
        if (!bySlot.has(target.slot)) bySlot.set(target.slot, target.url);
      }
    }
    return [...bySlot].map(([slot, url]) => ({ slot, url }));
  }

  /** The label that a metrics id stands for. */
  findLabel(metricsId: number): string {
    return this.#labels.findLabel(metricsId);
  }

  #commit(next: readonly Held[], removed: readonly RouteKey[]): void {
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
    }
  }
}

const NO_ROUTE_LABEL = "none";
const OTHER_LABEL = "other";
const OTHER_ID = 1;

/** Numbers for the `route` label: one label keeps its number, and past the bound all share one. */
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
