// The usual rate, size and form of the messages of one topic, and departures from them.
import type { IdSource } from "@platform/kernel/ids";
import { z } from "zod";
import { AnomalyLog, anomalyAnswer, type AnomalyKind, type Finding } from "./anomaly-log.ts";
import { LevelBaseline, type Departure } from "./level-baseline.ts";
import { ShapeBaseline } from "./shape-baseline.ts";

/** Messages of a sample by which a rate must differ. */
const MESSAGES_MIN = 10;
/** Bytes by which a size must differ, and the factor. */
const SIZE_BYTES_MIN = 256;
const SIZE_FACTOR_MIN = 1;
/** Larger payloads count by their size only. */
const PARSED_BYTES_MAX = 256 * 1024;

const storedLevel = z.tuple([z.number(), z.number(), z.number()]);
const storedTopic = z.object({
  rate: storedLevel,
  size: storedLevel,
  shape: z.array(z.tuple([z.string()]).rest(z.number())),
  anomalies: z.array(anomalyAnswer),
});

/** Observes the samples of a topic. */
export class TopicAnomalies {
  readonly #rate: LevelBaseline;
  readonly #size: LevelBaseline;
  readonly #shape: ShapeBaseline;
  readonly #log: AnomalyLog;

  /** `stored`: what `store` returned; anything else begins anew. */
  constructor(ids: Pick<IdSource, "uuid">, sampleSeconds: number, stored?: unknown) {
    const { data } = storedTopic.safeParse(stored);
    this.#rate = new LevelBaseline(() => MESSAGES_MIN / sampleSeconds, data?.rate);
    this.#size = new LevelBaseline(
      (mean) => Math.max(SIZE_BYTES_MIN, mean * SIZE_FACTOR_MIN),
      data?.size,
    );
    this.#shape = new ShapeBaseline(data?.shape);
    this.#log = new AnomalyLog(ids, data?.anomalies);
  }

  /** Takes the rate of a sample, in messages per second. */
  observeRate(perSecond: number, nowMs: number): void {
    const departure = this.#rate.observe(perSecond, nowMs);
    this.#log.update(["rate_spike", "rate_drop"], describeRate(departure), nowMs);
  }

  /** Takes payloads of a sample, at least one. */
  observePayloads(payloads: readonly Buffer[], nowMs: number): void {
    const bytes = payloads.reduce((sum, { length }) => sum + length, 0) / payloads.length;
    const size = describeSize(this.#size.observe(bytes, nowMs));
    for (const payload of payloads) {
      if (payload.length <= PARSED_BYTES_MAX) this.#shape.observe(parse(payload));
    }
    const shape = this.#shape.judge(nowMs);
    this.#log.update(["size_spike"], size, nowMs);
    const kinds = ["field_missing", "field_new", "type_changed", "not_json"] as const;
    this.#log.update(kinds, shape, nowMs);
  }

  /** The kinds of anomalies that last. */
  lasting(): Iterable<AnomalyKind> {
    return this.#log.lasting();
  }

  /** For the API. */
  describe() {
    return {
      learning: this.#rate.isLearning,
      baseline: {
        rate: round(this.#rate.mean),
        rate_deviation: round(this.#rate.deviation),
        bytes: Math.round(this.#size.mean),
        paths: this.#shape.paths,
      },
      anomalies: this.#log.list(),
    };
  }

  store(): z.input<typeof storedTopic> {
    return {
      rate: [...this.#rate.store()],
      size: [...this.#size.store()],
      shape: this.#shape.store().map(([path, ...counts]) => [path, ...counts]),
      anomalies: [...this.#log.list()].reverse(),
    };
  }
}

function describeRate(departure: Departure | undefined): Finding[] {
  if (departure === undefined) return [];
  const { direction, since, severity, observed, expected } = departure;
  const kind = direction === "up" ? "rate_spike" : "rate_drop";
  const detail = `${round(observed)} messages per second instead of about ${round(expected)}.`;
  return [{ kind, since, severity, observed: round(observed), expected: round(expected), detail }];
}

// Smaller messages than usual are no sign of trouble.
function describeSize(departure: Departure | undefined): Finding[] {
  if (departure?.direction !== "up") return [];
  const { since, severity, observed, expected } = departure;
  const [large, usual] = [Math.round(observed), Math.round(expected)];
  const detail = `Messages of ${large} bytes instead of about ${usual}.`;
  return [{ kind: "size_spike", since, severity, observed: large, expected: usual, detail }];
}

function parse(payload: Buffer): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(payload.toString("utf8")) };
  } catch {
    return undefined;
  }
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
