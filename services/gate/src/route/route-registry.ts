// The routes of a worker: a change is compiled first, then committed as a whole; replaced routes drain.
import type { CompiledRoute } from "../exchange/exchange.ts";
import { compileRoute, type CompileRouteOptions } from "./compile-route.ts";
import { forEachInSlices } from "./slices.ts";
import type { RouteKey, RouteSpec } from "../shared-state/index.ts";

/** A compiled change that is not active yet. */
export interface StagedRoutes {
  /** All routes after the change, until it is committed. */
  routes: Iterable<CompiledRoute>;
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
  /** Called when the drain deadline ended `cut` exchanges of a removed route. */
  onCut: (key: RouteKey, cut: number) => void;
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
      for (const { ready } of route.pools) if (ready !== undefined) lookups.add(ready);
    });
    const drainMs = options.limits.routeDrainMs;
    const replaced = new Set<RouteKey>(remove);
    await forEachInSlices(compiled, (route) => replaced.add(route.key));
    return {
      routes: joinRoutes(this.#routes.values(), replaced, compiled),
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
    if (this.#draining.delete(route)) release(route);
  }

  /** Ends exchanges past their drain deadline; called once a second. */
  tick(): void {
    const nowMs = this.#options.readNowMs();
    for (const [route, deadlineMs] of this.#draining) {
      if (nowMs < deadlineMs) continue;
      this.#draining.delete(route);
      const cut = this.#options.cutExchanges(route);
      release(route);
      if (cut > 0) this.#options.onCut(route.key, cut);
    }
  }

  #remove(key: RouteKey, drainMs: number): void {
    const route = this.#routes.get(key);
    if (route === undefined) return;
    this.#routes.delete(key);
    route.isRemoved = true;
    if (route.inFlight === 0) release(route);
    else this.#draining.set(route, this.#options.readNowMs() + drainMs);
  }
}

function* joinRoutes(
  routes: Iterable<CompiledRoute>,
  replaced: ReadonlySet<RouteKey>,
  added: readonly CompiledRoute[],
): Generator<CompiledRoute> {
  for (const route of routes) {
    if (!replaced.has(route.key)) yield route;
  }
  yield* added;
}

function release(route: CompiledRoute): void {
  route.steps.close();
  for (const held of route.pools) held.release(0);
}
