// The routes of a worker: a change is compiled first, then committed as a whole; replaced routes drain.
import type { CompiledRoute } from "../exchange/exchange.ts";
import { compileRoute, type CompileRouteOptions } from "./compile-route.ts";
import { forEachInSlices } from "./slices.ts";
import type { RouteKey, RouteSpec } from "../shared-state/index.ts";

/** A compiled change that is not active yet. */
export interface StagedRoutes {
  /** All routes after the change. */
  routes: readonly CompiledRoute[];
  /** Resolves when the first DNS lookups of new upstreams are done. */
  ready: Promise<void>;
  /** Commits the change once its table is active: replaced routes drain. */
  commit(): Promise<void>;
  /** Releases everything that was compiled for the change. */
  discard(): void;
}

/** Options of {@link RouteRegistry}. */
export interface RouteRegistryOptions {
  readNowMs: () => number;
  /** Called when a removed route has drained; the deadline ended `cut` of its exchanges. */
  onDrained: (key: RouteKey, cut: number) => void;
  /** Ends all exchanges of the route and returns their number. */
  cutExchanges: (route: CompiledRoute) => number;
}

/** Active routes by key, and draining routes. */
export class RouteRegistry {
  readonly #options: RouteRegistryOptions;
  readonly #routes = new Map<RouteKey, CompiledRoute>();
  readonly #draining = new Map<CompiledRoute, number>();

  constructor(options: RouteRegistryOptions) {
    this.#options = options;
  }

  /**
   * Compiles a change in slices. `upsert` contains all of its routes, staged ones included. Rejects, without retaining
   * anything, if a route cannot be compiled. Changes must not overlap.
   */
  async stage(
    upsert: readonly RouteSpec[],
    remove: readonly RouteKey[],
    options: CompileRouteOptions,
  ): Promise<StagedRoutes> {
    const compiled: CompiledRoute[] = [];
    const discard = (): void => {
      for (const route of compiled) release(route);
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

  /** Releases the pools of a removed route without active exchanges. */
  settle(route: CompiledRoute): void {
    if (this.#draining.delete(route)) this.#finish(route, 0);
  }

  /** Ends exchanges past their drain deadline; called once a second. */
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
    release(route);
    this.#options.onDrained(route.key, cut);
  }
}

function release(route: CompiledRoute): void {
  route.steps.close();
  for (const held of route.pools) held.release(0);
}
