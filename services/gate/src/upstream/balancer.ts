// Picks the target of an attempt by the route's strategy, among healthy targets that have not been tried yet.
import type {
  ActiveCounts,
  BalancerKind,
  SharedRouteState,
  TargetSpec,
} from "../shared-state/index.ts";
import { layOutTurns } from "./schedule.ts";
import type { TargetHealth } from "./target-health.ts";

/** Options of {@link createBalancer}. */
export interface BalancerOptions {
  routeState: SharedRouteState;
  active: ActiveCounts;
  health: TargetHealth;
  /** Returns a number in [0, 1); `Math.random` in production. */
  random: () => number;
}

/** Maximum number of targets of one route. */
const ROUTE_TARGETS_MAX = 1_024;

/** Picks targets of one route. */
export interface Balancer {
  /**
   * Returns the index of the next target, or -1 if all are in `tried` (indices). Only `ip_hash` uses `clientIp`. At most
   * half of a route's targets are treated as ejected; targets of weight 0 are never picked.
   */
  pick(tried: readonly number[], clientIp: string): number;
  /** True if the target at this index receives requests at all: its weight is above 0. */
  isWeighted(index: number): boolean;
}

/** Creates the balancer of one route; `routeSlot` holds its round-robin index. */
export function createBalancer(
  kind: BalancerKind,
  targets: readonly TargetSpec[],
  routeSlot: number,
  options: BalancerOptions,
): Balancer {
  if (targets.length > ROUTE_TARGETS_MAX) {
    throw new RangeError(
      `a route has ${targets.length} targets, the maximum is ${ROUTE_TARGETS_MAX}`,
    );
  }
  if (targets.length === 0) return NO_TARGET;
  if (targets.length === 1) return ONE_TARGET;
  return new HealthyBalancer(targets, options, createChooser(kind, targets, routeSlot, options));
}

// Without state, so that all routes with at most one target share them.
const NO_TARGET: Balancer = { pick: () => -1, isWeighted: () => false };
const ONE_TARGET: Balancer = {
  pick: (tried) => (tried.length === 0 ? 0 : -1),
  isWeighted: () => true,
};

/** Returns the preferred index among those set to 1 in `allowed`, or -1 if there is no such index. */
type Chooser = (allowed: Uint8Array, clientIp: string) => number;

class HealthyBalancer implements Balancer {
  readonly #targets: readonly TargetSpec[];
  readonly #health: TargetHealth;
  readonly #random: () => number;
  readonly #choose: Chooser;
  readonly #weighted: Uint8Array;
  readonly #weightedCount: number;
  readonly #allowed: Uint8Array;

  constructor(targets: readonly TargetSpec[], options: BalancerOptions, choose: Chooser) {
    this.#targets = targets;
    this.#health = options.health;
    this.#random = options.random;
    this.#choose = choose;
    this.#weighted = Uint8Array.from(targets, (target) => (target.weight > 0 ? 1 : 0));
    this.#weightedCount = this.#weighted.reduce((sum, one) => sum + one, 0);
    this.#allowed = new Uint8Array(targets.length);
  }

  pick(tried: readonly number[], clientIp: string): number {
    if (tried.length > 0) return this.#pickAgain(tried, clientIp);
    const first = this.#choose(this.#weighted, clientIp);
    const slot = this.#targets[first]!.slot;
    if (this.#health.isEjected(slot)) {
      this.#allowAllButHalf();
      return this.#allowed[first] === 1 ? first : this.#choose(this.#allowed, clientIp);
    }
    const share = this.#health.readShare(slot);
    if (share === 1 || this.#random() < share) return first;
    this.#allowAllButHalf();
    this.#allowed[first] = 0;
    const other = this.#choose(this.#allowed, clientIp);
    return other === -1 ? first : other;
  }

  isWeighted(index: number): boolean {
    return this.#weighted[index] === 1;
  }

  // Excludes ejected targets, at most half of all; further ejected targets keep receiving traffic.
  #allowAllButHalf(): void {
    this.#allowed.set(this.#weighted);
    let room = this.#weightedCount >> 1;
    for (let index = 0; index < this.#targets.length && room > 0; index++) {
      if (this.#weighted[index] === 0) continue;
      if (!this.#health.isEjected(this.#targets[index]!.slot)) continue;
      this.#allowed[index] = 0;
      room--;
    }
  }

  // A retry prefers targets that are not ejected.
  #pickAgain(tried: readonly number[], clientIp: string): number {
    this.#allowed.set(this.#weighted);
    for (const index of tried) this.#allowed[index] = 0;
    const untried = this.#allowed.slice();
    for (let index = 0; index < this.#targets.length; index++) {
      if (this.#health.isEjected(this.#targets[index]!.slot)) this.#allowed[index] = 0;
    }
    const healthy = this.#choose(this.#allowed, clientIp);
    return healthy === -1 ? this.#choose(untried, clientIp) : healthy;
  }
}

function createChooser(
  kind: BalancerKind,
  targets: readonly TargetSpec[],
  routeSlot: number,
  options: BalancerOptions,
): Chooser {
  const turns = layOutTurns(targets.map((target) => target.weight));
  switch (kind) {
    case "round_robin":
      return (allowed) => takeFrom(turns, options.routeState.takeTurn(routeSlot), allowed);
    case "random":
      return (allowed) => takeFrom(turns, Math.floor(options.random() * turns.length), allowed);
    case "least_conn":
      return (allowed) =>
        chooseLeastBusy(targets, options.active, options.routeState.takeTurn(routeSlot), allowed);
    case "ip_hash":
      return (allowed, clientIp) => chooseByAddress(targets, clientIp, allowed);
    default:
      throw new Error(`unknown balancer ${String(kind satisfies never)}`);
  }
}

// The target of the turn, or the next allowed one after it.
function takeFrom(turns: Uint16Array, turn: number, allowed: Uint8Array): number {
  for (let step = 0; step < turns.length; step++) {
    const index = turns[(turn + step) % turns.length]!;
    if (allowed[index] === 1) return index;
  }
  return -1;
}

// The target with the fewest active exchanges relative to its weight; ties rotate.
function chooseLeastBusy(
  targets: readonly TargetSpec[],
  active: ActiveCounts,
  turn: number,
  allowed: Uint8Array,
): number {
  let best = -1;
  let bestLoad = Number.POSITIVE_INFINITY;
  for (let step = 0; step < targets.length; step++) {
    const index = (turn + step) % targets.length;
    if (allowed[index] === 0) continue;
    const target = targets[index]!;
    const load = (active.sum(target.slot) + 1) / target.weight;
    if (load < bestLoad) {
      best = index;
      bestLoad = load;
    }
  }
  return best;
}

// Rendezvous hashing: a client keeps its target as long as that target exists.
function chooseByAddress(
  targets: readonly TargetSpec[],
  clientIp: string,
  allowed: Uint8Array,
): number {
  let best = -1;
  let bestScore = Number.NEGATIVE_INFINITY;
  for (let index = 0; index < targets.length; index++) {
    if (allowed[index] === 0) continue;
    const target = targets[index]!;
    const unit = (hashText(clientIp, hashText(target.url, 0x811c9dc5)) + 1) / 4_294_967_297;
    const score = -target.weight / Math.log(unit);
    if (score > bestScore) {
      best = index;
      bestScore = score;
    }
  }
  return best;
}

// FNV-1a with the finalizer of MurmurHash3, because FNV alone has poor avalanche.
function hashText(text: string, seed: number): number {
  let hash = seed;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
