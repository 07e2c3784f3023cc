// The registry: makes the families of one service, takes in collectors, and renders all of them for a scrape.
import { renderMetrics } from "./exposition.ts";
import type { Collector, MetricFamily } from "./family.ts";
import {
  Counter,
  Gauge,
  Histogram,
  type FamilyOptions,
  type HistogramOptions,
} from "./instrument.ts";

/** Bounds of one registry. */
export interface MetricRegistryOptions {
  /** Families that may be made; one more throws. Default 500. */
  familiesMax?: number;
  /** How long one scrape waits for a collector before it is left out, in ms. Default 2 000. */
  collectorTimeoutMs?: number;
}

/** All metrics of one service. Names are unique; making one twice throws a TypeError. */
export class MetricRegistry {
  readonly #families = new Map<string, { collect(): MetricFamily }>();
  readonly #collectors = new Set<Collector>();
  readonly #familiesMax: number;
  readonly #collectorTimeoutMs: number;
  readonly #overflows: Counter<"metric">;
  readonly #collectorErrors: Counter<"collector">;
  readonly #conflicts: Counter<"metric">;

  constructor(options: MetricRegistryOptions = {}) {
    this.#familiesMax = options.familiesMax ?? 500;
    this.#collectorTimeoutMs = options.collectorTimeoutMs ?? 2_000;
    this.#overflows = new Counter({
      name: "platform_metrics_overflow_total",
      help: "Label combinations folded into the overflow series because their metric was full.",
      labels: ["metric"],
      seriesMax: this.#familiesMax,
    });
    this.#collectorErrors = new Counter({
      name: "platform_metrics_collector_errors_total",
      help: "Scrapes that had to leave a collector out because it failed or took too long.",
      labels: ["collector"],
    });
    this.#conflicts = new Counter({
      name: "platform_metrics_conflicts_total",
      help: "Samples left out of a scrape because they contradict an earlier family of the same name.",
      labels: ["metric"],
    });
    this.#keep("platform_metrics_overflow_total", this.#overflows);
    this.#keep("platform_metrics_conflicts_total", this.#conflicts);
    this.#keep("platform_metrics_collector_errors_total", this.#collectorErrors);
  }

  counter<const L extends string = never>(options: FamilyOptions<L>): Counter<L> {
    return this.#keep(options.name, new Counter<L>(options, this.#onOverflow(options.name)));
  }

  gauge<const L extends string = never>(options: FamilyOptions<L>): Gauge<L> {
    return this.#keep(options.name, new Gauge<L>(options, this.#onOverflow(options.name)));
  }

  histogram<const L extends string = never>(options: HistogramOptions<L>): Histogram<L> {
    return this.#keep(options.name, new Histogram<L>(options, this.#onOverflow(options.name)));
  }

  /** Asks the collector at every scrape from now on; the returned function ends that. */
  collect(collector: Collector): () => void {
    this.#collectors.add(collector);
    return () => {
      this.#collectors.delete(collector);
    };
  }

  /** Everything as Prometheus text. A late or failing collector, or a contradicting sample, is left out and counted. */
  async render(): Promise<string> {
    const gathered = await Promise.all(
      Array.from(this.#collectors, (collector) => this.#ask(collector)),
    );
    const own = Array.from(this.#families.values(), (family) => family.collect());
    return renderMetrics([...own, ...gathered.flat()], (metric) => {
      this.#conflicts.with({ metric }).add();
    });
  }

  async #ask(collector: Collector): Promise<MetricFamily[]> {
    let timer: NodeJS.Timeout | undefined;
    try {
      const late = new Promise<never>((_resolve, reject) => {
        timer = setTimeout(() => reject(new Error("collector is late")), this.#collectorTimeoutMs);
      });
      return Array.from(await Promise.race([collector.collect(), late]), holdSamples);
    } catch {
      this.#collectorErrors.with({ collector: collector.name }).add();
      return [];
    } finally {
      clearTimeout(timer);
    }
  }

  #onOverflow(metric: string): () => void {
    return () => this.#overflows.with({ metric }).add();
  }

  #keep<F extends { collect(): MetricFamily }>(name: string, family: F): F {
    if (this.#families.has(name)) throw new TypeError(`metric ${name} exists already`);
    if (this.#families.size >= this.#familiesMax) throw new TypeError(`too many metrics: ${name}`);
    this.#families.set(name, family);
    return family;
  }
}

// A generator that throws half way must fail here, inside the collector's own try, not while rendering.
function holdSamples(family: MetricFamily): MetricFamily {
  return family.type === "histogram"
    ? { ...family, samples: Array.from(family.samples) }
    : { ...family, samples: Array.from(family.samples) };
}
