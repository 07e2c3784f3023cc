// The routes of a worker: changes are compiled aside, taken up all at once, and what they replace drains.
import { compileRoute, type CompiledRoute, type CompileRouteOptions } from "./compiled-route.ts";
import { forEachInSlices } from "./slices.ts";
import type { RouteKey, RouteSpec } from "../shared-state/index.ts";

/** What a change does to the routes, compiled but not in force. */
export interface StagedRoutes {
  /** The routes as they will be. */
  routes: readonly CompiledRoute[];
  /** Settles once the first lookups of new upstreams are over. */
  ready: Promise<void>;
  /** Makes the change the book's own, once its table is in force: what it replaces drains. */
  commit(): Promise<void>;
  /** Lets go of everything that was compiled for it. */
  discard(): void;
}

/** What {@link RouteRegistry} tells and how long it lets streams go on. */
export interface RouteRegistryOptions {
  readNowMs: () => number;
  /** A removed route is through: `cut` of its exchanges were ended by the deadline. */
  onDrained: (key: RouteKey, cut: number) => void;
  /** Ends all exchanges of the route and returns how many there were. */
  cutExchanges: (route: CompiledRoute) => number;
}

/** Routes in force by key, and those that drain. */
export class RouteRegistry {
  readonly #options: RouteRegistryOptions;
  readonly #routes = new Map<RouteKey, CompiledRoute>();
  readonly #draining = new Map<CompiledRoute, number>();

  constructor(options: RouteRegistryOptions) {
    this.#options = options;
  }

  /**
   * Compiles a change in slices: `upsert` are all its routes, those that were sent ahead included. Rejects where a route
   * of it cannot be compiled; then nothing is held. Changes do not overlap.
   */
  async stage(
    upsert: readonly RouteSpec[],
    remove: readonly RouteKey[],
    options: CompileRouteOptions,
  ): Promise<StagedRoutes> {
    const compiled: CompiledRoute[] = [];
    const discard = (): void => {
      for (const route of compiled) for (const held of route.pools) held.release(0);
    };
    try {
      await forEachInSlices(upsert, (spec) => compiled.push(compileRoute(spec, options)));
    } catch (error) {
      discard();
      throw error;
    }
    const lookups = new Set<Promise<void>>();
    await forEachInSlices(compiled, (route) => {
      for (const held of route.pools) lookups.add(held.ready);
    });
    const drainMs = options.limits.routeDrainMs;
    const next = new Map(this.#routes);
    for (const key of remove) next.delete(key);
    await forEachInSlices(compiled, (route) => next.set(route.key, route));
    return {
      routes: [...next.values()],
      ready: Promise.all(lookups).then(() => undefined),
      discard,
      commit: async () => {
        await forEachInSlices(remove, (key) => this.#remove(key, drainMs));
        await forEachInSlices(compiled, (route) => {
          this.#remove(route.key, drainMs);
          this.#routes.set(route.key, route);
        });
      },
    };
  }

  /** A removed route has nothing under way any more: its pools are given back. */
  settle(route: CompiledRoute): void {
    if (this.#draining.delete(route)) this.#finish(route, 0);
  }

  /** Ends what goes on past its deadline; called once a second. */
  tick(): void {
    const nowMs = this.#options.readNowMs();
    for (const [route, deadlineMs] of this.#draining) {
      if (nowMs < deadlineMs) continue;
      this.#draining.delete(route);
      this.#finish(route, this.#options.cutExchanges(route));
    }
  }

  #remove(key: RouteKey, drainMs: number): void {
    const route = this.#routes.get(key);
    if (route === undefined) return;
    this.#routes.delete(key);
    route.isRemoved = true;
    if (route.inFlight === 0) this.#finish(route, 0);
    else this.#draining.set(route, this.#options.readNowMs() + drainMs);
  }

  #finish(route: CompiledRoute, cut: number): void {
    for (const held of route.pools) held.release(0);
    this.#options.onDrained(route.key, cut);
  }
}
