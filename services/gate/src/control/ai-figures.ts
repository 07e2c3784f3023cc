// Figures of AI routes: sums over all workers, also those that have ended.
import type { Collector, MetricFamily } from "@platform/kernel/metrics";
import type { AiFigures as ReportedFigures } from "../shared-state/index.ts";

/** Models that are told apart, over all routes; those that come later are counted together. */
const MODELS_MAX = 200;
const OTHER = "other";

type Labels = [name: string, value: string][];

/** A metric of AI routes and how it is read. */
interface ShownFigure {
  readonly name: string;
  readonly help: string;
  readonly read: (figures: ReportedFigures) => number;
}

const PICO_PER_USD = 1e12;
const SHOWN: readonly ShownFigure[] = [
  {
    name: "platform_gate_ai_requests_total",
    help: "Requests to models.",
    read: ({ requests }) => requests,
  },
  {
    name: "platform_gate_ai_cost_usd_total",
    help: "Cost of requests to models.",
    read: ({ costPico }) => Number(costPico) / PICO_PER_USD,
  },
  {
    name: "platform_gate_ai_cache_hits_total",
    help: "Requests to models that were answered from stored answers.",
    read: ({ cacheHits }) => cacheHits,
  },
  {
    name: "platform_gate_ai_estimated_total",
    help: "Requests to models whose provider reported no usage, so that it was estimated.",
    read: ({ estimated }) => estimated,
  },
  {
    name: "platform_gate_ai_unpriced_total",
    help: "Requests to models without a price.",
    read: ({ unpriced }) => unpriced,
  },
  {
    name: "platform_gate_ai_faulty_reports_total",
    help: "Figures of providers that cannot be true and were ignored.",
    read: ({ faultyReports }) => faultyReports,
  },
];
const TOKEN_KINDS: readonly (readonly [kind: string, read: ShownFigure["read"]])[] = [
  ["input", ({ inputTokens }) => inputTokens],
  ["cached_input", ({ cachedTokens }) => cachedTokens],
  ["output", ({ outputTokens }) => outputTokens],
];

/** Sums by route and model. */
export class AiFigures implements Collector {
  readonly name = "ai";
  readonly #sums = new Map<string, ReportedFigures>();
  readonly #models = new Set<string>();

  /** Adds what a worker has reported. */
  add(reported: readonly ReportedFigures[]): void {
    for (const figures of reported) {
      const sums = this.#find(figures.route, this.#name(figures.model));
      sums.requests += figures.requests;
      sums.inputTokens += figures.inputTokens;
      sums.outputTokens += figures.outputTokens;
      sums.cachedTokens += figures.cachedTokens;
      sums.costPico += figures.costPico;
      sums.cacheHits += figures.cacheHits;
      sums.estimated += figures.estimated;
      sums.unpriced += figures.unpriced;
      sums.faultyReports += figures.faultyReports;
    }
  }

  /** Sums over all routes and models. */
  readTotals(): { requests: number; tokens: number; cacheHits: number } {
    const totals = { requests: 0, tokens: 0, cacheHits: 0 };
    for (const { requests, inputTokens, outputTokens, cacheHits } of this.#sums.values()) {
      totals.requests += requests;
      totals.tokens += inputTokens + outputTokens;
      totals.cacheHits += cacheHits;
    }
    return totals;
  }

  collect(): MetricFamily[] {
    const all = [...this.#sums.values()].map((sums) => {
      const labels: Labels = [
        ["route", sums.route],
        ["model", sums.model],
      ];
      return { labels, sums };
    });
    const tokens: MetricFamily = {
      type: "counter",
      name: "platform_gate_ai_tokens_total",
      help: "Tokens of requests to models; cached input is part of the input.",
      samples: all.flatMap(({ labels, sums }) =>
        TOKEN_KINDS.map(([kind, read]) => ({
          labels: [...labels, ["kind", kind]] as Labels,
          value: read(sums),
        })),
      ),
    };
    const shown = SHOWN.map(({ name, help, read }): MetricFamily => {
      const samples = all.map(({ labels, sums }) => ({ labels, value: read(sums) }));
      return { type: "counter", name, help, samples };
    });
    return [...shown, tokens];
  }

  #name(model: string): string {
    if (this.#models.has(model)) return model;
    if (this.#models.size >= MODELS_MAX) return OTHER;
    this.#models.add(model);
    return model;
  }

  #find(route: string, model: string): ReportedFigures {
    const key = `${route}\n${model}`;
    const known = this.#sums.get(key);
    if (known !== undefined) return known;
    const sums: ReportedFigures = {
      route,
      model,
      requests: 0,
      inputTokens: 0,
      outputTokens: 0,
      cachedTokens: 0,
      costPico: 0n,
      cacheHits: 0,
      estimated: 0,
      unpriced: 0,
      faultyReports: 0,
    };
    this.#sums.set(key, sums);
    return sums;
  }
}
