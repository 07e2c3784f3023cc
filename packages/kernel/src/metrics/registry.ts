// The registry: creates the families of a service, accepts collectors, and renders all of them.
import { renderMetrics } from "./exposition.ts";
import type { Collector, MetricFamily } from "./family.ts";
import {
  Counter,
  Gauge,
  Histogram,
  type FamilyOptions,
  type HistogramOptions,
} from "./instrument.ts";

/** Options of {@link MetricRegistry}. */
export interface MetricRegistryOptions {
  /** Maximum number of families; further ones throw. Default 500. */
  familiesMax?: number;
  /** Timeout of a collector, after which the scrape omits it, in ms. Default 2 000. */
  collectorTimeoutMs?: number;
}

/** All metrics of a service. Creating a name twice throws a TypeError. */
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
      help: "Label combinations added to the overflow series of a full metric.",
      labels: ["metric"],
      seriesMax: this.#familiesMax,
    });
    this.#collectorErrors = new Counter({
      name: "platform_metrics_collector_errors_total",
      help: "Scrapes without a collector that failed or timed out.",
      labels: ["collector"],
    });
    this.#conflicts = new Counter({
      name: "platform_metrics_conflicts_total",
      help: "Samples omitted because they contradict an earlier family of the same name.",
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

  /** A family of this registry by name, without collectors; undefined if there is none. */
  find(name: string): MetricFamily | undefined {
    return this.#families.get(name)?.collect();
  }

  /** Adds a collector, called at each scrape; the returned function removes it. */
  collect(collector: Collector): () => void {
    this.#collectors.add(collector);
    return () => {
      this.#collectors.delete(collector);
    };
  }

  /**
   * Renders all metrics as Prometheus text. Failed and late collectors and contradicting samples are omitted and
   * counted.
   */
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
        timer = setTimeout(
          () => reject(new Error("collector timed out")),
          this.#collectorTimeoutMs,
        );
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

// A generator that throws must fail here, inside the collector's own try, not while rendering.
function holdSamples(family: MetricFamily): MetricFamily {
  return family.type === "histogram"
    ? { ...family, samples: Array.from(family.samples) }
    : { ...family, samples: Array.from(family.samples) };
}
