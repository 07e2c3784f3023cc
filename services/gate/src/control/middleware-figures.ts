// Figures of WebAssembly middleware: sums over all workers, also those that have ended.
import type { MetricFamily } from "@platform/kernel/metrics";
import {
  GUEST_FUEL_BUCKETS,
  GUEST_OUTCOMES,
  GUEST_SECONDS_BOUNDS,
  type GuestFigures,
} from "../shared-state/index.ts";

/** Figures of a middleware for the API. */
export interface MiddlewareUse {
  readonly calls: number;
  readonly failures: number;
  /** Units of fuel that half of the calls, and 99 of 100, do not exceed; null before the first call. */
  readonly fuelP50: number | null;
  readonly fuelP99: number | null;
}

interface Sums {
  readonly outcomes: number[];
  secondsSum: number;
  readonly seconds: number[];
  readonly fuel: number[];
  ignoredFields: number;
  /** By worker. */
  readonly instances: Map<number, number>;
}

/** Sums of figures by name. */
export class MiddlewareFigures {
  readonly #sums = new Map<string, Sums>();

  /** Adds what a worker has reported. */
  add(worker: number, figures: readonly GuestFigures[]): void {
    for (const reported of figures) {
      const sums = this.#sums.get(reported.name) ?? createSums();
      this.#sums.set(reported.name, sums);
      addTo(sums.outcomes, reported.outcomes);
      addTo(sums.seconds, reported.seconds);
      addTo(sums.fuel, reported.fuel);
      sums.secondsSum += reported.secondsSum;
      sums.ignoredFields += reported.ignoredFields;
      sums.instances.set(worker, reported.instances);
    }
  }

  /** A middleware was removed. */
  forget(name: string): void {
    this.#sums.delete(name);
  }

  /** The figures of one middleware. */
  read(name: string): MiddlewareUse {
    const { outcomes, fuel } = this.#sums.get(name) ?? createSums();
    const [next = 0, answered = 0, ...failed] = outcomes;
    const failures = failed.reduce((sum, count) => sum + count, 0);
    return {
      calls: next + answered + failures,
      failures,
      fuelP50: findQuantile(fuel, 0.5),
      fuelP99: findQuantile(fuel, 0.99),
    };
  }

  /** The metrics of all middleware. */
  collect(): MetricFamily[] {
    const all = [...this.#sums].map(([name, sums]) => ({
      labels: [["name", name]] as [string, string][],
      sums,
    }));
    return [
      {
        type: "counter",
        name: "platform_gate_middleware_total",
        help: "Calls of WebAssembly middleware by outcome.",
        samples: all.flatMap(({ labels, sums }) =>
          GUEST_OUTCOMES.map((outcome, index) => ({
            labels: [...labels, ["outcome", outcome] as [string, string]],
            value: sums.outcomes[index]!,
          })),
        ),
      },
      {
        type: "histogram",
        name: "platform_gate_middleware_seconds",
        help: "Durations of calls of WebAssembly middleware.",
        samples: all.map(({ labels, sums }) => ({
          labels,
          bounds: GUEST_SECONDS_BOUNDS,
          counts: sums.seconds,
          sum: sums.secondsSum,
        })),
      },
      {
        type: "counter",
        name: "platform_gate_middleware_ignored_fields_total",
        help: "Fields of framing and connections that WebAssembly middleware tried to change in vain.",
        samples: all.map(({ labels, sums }) => ({ labels, value: sums.ignoredFields })),
      },
      {
        type: "gauge",
        name: "platform_gate_middleware_instances",
        help: "Instances of WebAssembly middleware in all workers.",
        samples: all.map(({ labels, sums }) => ({
          labels,
          value: [...sums.instances.values()].reduce((sum, count) => sum + count, 0),
        })),
      },
    ];
  }
}

/** The upper bound of the bucket that holds a quantile. */
function findQuantile(fuel: readonly number[], quantile: number): number | null {
  const total = fuel.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let left = Math.ceil(total * quantile);
  const index = fuel.findIndex((count) => (left -= count) <= 0);
  return 2 ** index - 1;
}

function createSums(): Sums {
  return {
    outcomes: GUEST_OUTCOMES.map(() => 0),
    secondsSum: 0,
    seconds: Array.from({ length: GUEST_SECONDS_BOUNDS.length + 1 }, () => 0),
    fuel: Array.from({ length: GUEST_FUEL_BUCKETS }, () => 0),
    ignoredFields: 0,
    instances: new Map(),
  };
}

function addTo(sums: number[], added: readonly number[]): void {
  for (const [index, value] of added.entries()) sums[index]! += value;
}
