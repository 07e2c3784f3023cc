// The canary engine: promotes the last of two weighted targets step by step, and rolls it back if it fails too often.
import type { Collector, MetricFamily } from "@platform/kernel/metrics";
import { z } from "zod";
import type { CanarySpec, RouteKey } from "../shared-state/index.ts";

/** Attempts below which there is no error rate. */
const REQUESTS_MIN = 3;
const FULL = 100;
/** Steps of a canary that are kept. */
const STEPS_MAX = 20;

const stateSchema = z.enum(["promoting", "held", "rolled_back", "promoted"]);

/** State of a canary. */
export type CanaryPhase = z.infer<typeof stateSchema>;

const stepSchema = z.object({
  /** Epoch ms. */
  at: z.number(),
  phase: stateSchema,
  /** Share of the canary in percent. */
  weight: z.number(),
  /** Attempts at the canary with this share, and those that failed. */
  requests: z.number(),
  failures: z.number(),
});

/** A share that a canary had, or has. */
export type CanaryStep = z.infer<typeof stepSchema>;

/** State of a canary, for the API. */
export const canaryState = z.object({
  phase: stateSchema,
  weight: z.number().describe("Its share in percent"),
  steps: z.array(stepSchema).describe("The last steps in their order; the current one is the last"),
  next: z
    .object({ at: z.number(), weight: z.number() })
    .optional()
    .describe("The next step, if one follows by itself: its time in epoch ms, and the share"),
});

/** State of a canary. */
export type CanaryView = z.infer<typeof canaryState> & { spec: CanarySpec };

/** An action of an operator. */
export type CanaryAction = "hold" | "resume" | "promote" | "rollback";

/** Stored states, by route. */
export const canaryStatesSchema = z.record(
  z.string(),
  z.object({
    configured: z.string(),
    phase: stateSchema,
    weight: z.number(),
    steps: z.array(stepSchema).default([]),
  }),
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
  /** Wall clock in epoch ms, for people. */
  readTimeMs: () => number;
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
  /** The last one is current: its counts are those before the window, or before `counted` of the window. */
  steps: CanaryStep[];
  counted: { requests: number; failures: number };
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
    this.#settle(canary, true);
    canary.nextStepMs = this.#options.readNowMs() + canary.route.spec.stepMs;
    this.#move(canary, phase, weight);
    this.#options.store(this.#listStates());
    const route = canary.route.label;
    this.#options.log("info", `canary: ${action}`, { audit: "true", caller, route, weight });
    return { phase, weight };
  }

  /** The state of a route's canary; undefined if it has none. */
  view(key: RouteKey): CanaryView | undefined {
    const canary = this.#canaries.get(key);
    if (canary === undefined) return undefined;
    const { phase, weight, route, nextStepMs } = canary;
    const { readNowMs, readTimeMs } = this.#options;
    const steps = [...canary.steps.slice(0, -1), countCurrent(canary)];
    if (phase !== "promoting") return { phase, weight, steps, spec: route.spec };
    const at = readTimeMs() + Math.max(0, nextStepMs - readNowMs());
    const next = { at, weight: Math.min(FULL, weight + route.spec.stepPoints) };
    return { phase, weight, steps, next, spec: route.spec };
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
    const phase = isKept ? stored.phase : "promoting";
    const weight = isKept ? stored.weight : (canary / (stable + canary)) * FULL;
    const kept = isKept ? stored.steps : [];
    return {
      route,
      configured,
      phase,
      weight,
      nextStepMs: this.#options.readNowMs() + route.spec.stepMs,
      steps: kept.length > 0 ? structuredClone(kept) : [this.#createStep(phase, weight)],
      counted: { requests: 0, failures: 0 },
    };
  }

  #createStep(phase: CanaryPhase, weight: number): CanaryStep {
    return { at: this.#options.readTimeMs(), phase, weight, requests: 0, failures: 0 };
  }

  /** Adds what the window has counted to the current step. */
  #settle(canary: Canary, restarts: boolean): void {
    const { requests, failures } = canary.route.readCounts();
    canary.steps[canary.steps.length - 1] = countCurrent(canary);
    canary.counted = restarts ? { requests: 0, failures: 0 } : { requests, failures };
    if (restarts) canary.route.restartWindow();
  }

  #check(canary: Canary): boolean {
    const { route } = canary;
    const { requests, failures } = route.readCounts();
    if (requests < REQUESTS_MIN) return false;
    const errorRate = failures / requests;
    if (errorRate <= route.spec.errorRateMax) return false;
    const from = canary.weight;
    this.#settle(canary, false);
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
    this.#settle(canary, route.readCounts().requests >= REQUESTS_MIN);
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
    const current = canary.steps.at(-1)!;
    // A share that is held, or promoted further, is still the same step.
    if (current.weight === weight) current.phase = phase;
    else canary.steps = [...canary.steps, this.#createStep(phase, weight)].slice(-STEPS_MAX);
    canary.phase = phase;
    canary.weight = weight;
    canary.route.setWeight(weight);
  }

  #listStates(): CanaryStates {
    return Object.fromEntries(
      [...this.#canaries].map(([key, { configured, phase, weight, steps }]) => [
        key,
        { configured, phase, weight, steps },
      ]),
    );
  }
}

/** The current step with what the window has counted in it. */
function countCurrent({ route, steps, counted }: Canary): CanaryStep {
  const current = steps.at(-1)!;
  const { requests, failures } = route.readCounts();
  return {
    ...current,
    requests: current.requests + Math.max(0, requests - counted.requests),
    failures: current.failures + Math.max(0, failures - counted.failures),
  };
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
