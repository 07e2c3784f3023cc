// The canary engine: promotes the last of two weighted targets step by step, and rolls it back if it fails too often.
import type { Collector, MetricFamily } from "@platform/kernel/metrics";
import * as z from "zod";
import type { CanarySpec, RouteKey } from "../shared-state/index.ts";

/** Attempts below which there is no error rate. */
const REQUESTS_MIN = 3;
const FULL = 100;

const stateSchema = z.enum(["promoting", "held", "rolled_back", "promoted"]);

/** State of a canary. */
export type CanaryPhase = z.infer<typeof stateSchema>;

/** An action of an operator. */
export type CanaryAction = "hold" | "resume" | "promote" | "rollback";

/** Stored states, by route. */
export const canaryStatesSchema = z.record(
  z.string(),
  z.object({ configured: z.string(), phase: stateSchema, weight: z.number() }),
);

/** {@link canaryStatesSchema}. */
export type CanaryStates = z.infer<typeof canaryStatesSchema>;

/** A route with automatic promotion. */
export interface CanaryRoute {
  key: RouteKey;
  label: string;
  spec: CanarySpec;
  /** Configured weights of the stable target and of the canary. */
  weights: readonly [stable: number, canary: number];
  /** Attempts at the canary and their failures since the last restart of the window. */
  readCounts: () => { requests: number; failures: number };
  restartWindow: () => void;
  /** Sets the weight of the canary in percent; the stable target gets the rest. */
  setWeight: (percent: number) => void;
}

/** Options of {@link CanaryEngine}. */
export interface CanaryEngineOptions {
  /** A monotonic clock in milliseconds. */
  readNowMs: () => number;
  /** States that were stored before the start. */
  stored: CanaryStates;
  /** Called with all states after each change. */
  store: (states: CanaryStates) => void;
  log: (level: "info" | "warn", msg: string, fields: Record<string, string | number>) => void;
}

interface Canary {
  route: CanaryRoute;
  configured: string;
  phase: CanaryPhase;
  weight: number;
  nextStepMs: number;
}

/** The engine of one gateway. */
export class CanaryEngine implements Collector {
  readonly name = "canaries";
  readonly #options: CanaryEngineOptions;
  #canaries = new Map<RouteKey, Canary>();
  #rollbacks = 0;
  #promotions = 0;

  constructor(options: CanaryEngineOptions) {
    this.#options = options;
  }

  /**
   * Follows these routes from now on. A route whose weights and steps are unchanged keeps its state, also over a restart;
   * one with other settings starts again with its configured weights.
   */
  follow(routes: readonly CanaryRoute[]): void {
    const before = this.#canaries;
    this.#canaries = new Map();
    for (const route of routes) {
      const configured = JSON.stringify([route.weights, route.spec]);
      const known = before.get(route.key);
      const canary = known?.configured === configured ? known : this.#begin(route, configured);
      canary.route = route;
      route.setWeight(canary.weight);
      this.#canaries.set(route.key, canary);
    }
  }

  /** Checks error rates and takes the steps that are due; called once a second. */
  tick(): void {
    let isChanged = false;
    for (const canary of this.#canaries.values()) {
      if (canary.phase !== "promoting" && canary.phase !== "held") continue;
      isChanged = this.#check(canary) || this.#step(canary) || isChanged;
    }
    if (isChanged) this.#options.store(this.#listStates());
  }

  /**
   * An operator's action, from any phase; returns the new state, undefined if the route has no canary. While a canary is
   * held, its error rate is still checked.
   */
  steer(
    key: RouteKey,
    action: CanaryAction,
    caller: string,
  ): { phase: CanaryPhase; weight: number } | undefined {
    const canary = this.#canaries.get(key);
    if (canary === undefined) return undefined;
    const [phase, weight] = steered(action, canary.weight);
    canary.route.restartWindow();
    canary.nextStepMs = this.#options.readNowMs() + canary.route.spec.stepMs;
    this.#move(canary, phase, weight);
    this.#options.store(this.#listStates());
    const route = canary.route.label;
    this.#options.log("info", `canary: ${action}`, { audit: "true", caller, route, weight });
    return { phase, weight };
  }

  /** The phase and the current weight of a route's canary; undefined if it has none. */
  view(key: RouteKey): { phase: CanaryPhase; weight: number } | undefined {
    const canary = this.#canaries.get(key);
    return canary === undefined ? undefined : { phase: canary.phase, weight: canary.weight };
  }

  collect(): MetricFamily[] {
    return [
      {
        name: "platform_gate_canary_rollbacks_total",
        help: "Canaries rolled back because of their error rate.",
        type: "counter",
        samples: [{ labels: [], value: this.#rollbacks }],
      },
      {
        name: "platform_gate_canary_promotions_total",
        help: "Canaries promoted to all traffic.",
        type: "counter",
        samples: [{ labels: [], value: this.#promotions }],
      },
    ];
  }

  #begin(route: CanaryRoute, configured: string): Canary {
    const stored = this.#options.stored[route.key];
    const [stable, canary] = route.weights;
    const isKept = stored?.configured === configured;
    route.restartWindow();
    return {
      route,
      configured,
      phase: isKept ? stored.phase : "promoting",
      weight: isKept ? stored.weight : (canary / (stable + canary)) * FULL,
      nextStepMs: this.#options.readNowMs() + route.spec.stepMs,
    };
  }

  #check(canary: Canary): boolean {
    const { route } = canary;
    const { requests, failures } = route.readCounts();
    if (requests < REQUESTS_MIN) return false;
    const errorRate = failures / requests;
    if (errorRate <= route.spec.errorRateMax) return false;
    const from = canary.weight;
    this.#move(canary, "rolled_back", 0);
    this.#rollbacks++;
    this.#options.log("warn", "canary rolled back", {
      route: route.label,
      weight: from,
      requests,
      failures,
      error_rate: errorRate,
      error_rate_max: route.spec.errorRateMax,
    });
    return true;
  }

  #step(canary: Canary): boolean {
    const { route } = canary;
    const nowMs = this.#options.readNowMs();
    if (canary.phase === "held") return false;
    if (nowMs < canary.nextStepMs) return false;
    const weight = Math.min(FULL, canary.weight + route.spec.stepPoints);
    // A window with fewer requests goes on: a canary with little traffic would otherwise never be judged.
    if (route.readCounts().requests >= REQUESTS_MIN) route.restartWindow();
    canary.nextStepMs = nowMs + route.spec.stepMs;
    this.#move(canary, weight === FULL ? "promoted" : "promoting", weight);
    if (weight === FULL) this.#promotions++;
    this.#options.log("info", weight === FULL ? "canary fully promoted" : "canary promoted", {
      route: route.label,
      weight,
    });
    return true;
  }

  #move(canary: Canary, phase: CanaryPhase, weight: number): void {
    canary.phase = phase;
    canary.weight = weight;
    canary.route.setWeight(weight);
  }

  #listStates(): CanaryStates {
    return Object.fromEntries(
      [...this.#canaries].map(([key, { configured, phase, weight }]) => [
        key,
        { configured, phase, weight },
      ]),
    );
  }
}

function steered(action: CanaryAction, weight: number): [phase: CanaryPhase, weight: number] {
  switch (action) {
    case "hold":
      return ["held", weight];
    case "resume":
      return ["promoting", weight];
    case "promote":
      return ["promoted", FULL];
    case "rollback":
      return ["rolled_back", 0];
    default:
      return action satisfies never;
  }
}
