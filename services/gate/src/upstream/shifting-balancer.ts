// Balances by effective weights, which the canary engine changes while the route stays the same.
import type { SharedLinkState, SharedRouteState, TargetSpec } from "../shared-state/index.ts";
import type { Balancer } from "./balancer.ts";

/** Options of {@link ShiftingBalancer}. */
export interface ShiftingBalancerOptions {
  targets: readonly TargetSpec[];
  routeSlot: number;
  routeState: SharedRouteState;
  links: SharedLinkState;
  /** Creates the balancer of targets with their effective weights. */
  create: (targets: readonly TargetSpec[]) => Balancer;
}

/** A balancer that is created again when the weights have changed. */
export class ShiftingBalancer implements Balancer {
  readonly #options: ShiftingBalancerOptions;
  #version: number;
  #balancer: Balancer;

  constructor(options: ShiftingBalancerOptions) {
    this.#options = options;
    this.#version = options.routeState.readWeightsVersion(options.routeSlot);
    this.#balancer = this.#create();
  }

  pick(tried: readonly number[], clientIp: string): number {
    return this.#refresh().pick(tried, clientIp);
  }

  isWeighted(index: number): boolean {
    return this.#refresh().isWeighted(index);
  }

  #refresh(): Balancer {
    const { routeState, routeSlot } = this.#options;
    const version = routeState.readWeightsVersion(routeSlot);
    if (version === this.#version) return this.#balancer;
    this.#version = version;
    this.#balancer = this.#create();
    return this.#balancer;
  }

  #create(): Balancer {
    const { targets, links, create } = this.#options;
    return create(
      targets.map((target) => ({
        ...target,
        weight: links.readWeight(target.link) ?? target.weight,
      })),
    );
  }
}
