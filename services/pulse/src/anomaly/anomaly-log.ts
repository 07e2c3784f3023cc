// The anomalies of a topic: those that last, and the latest that have ended.
import type { IdSource } from "@platform/kernel/ids";
import { z } from "zod";

/** Ways in which the messages of a topic can be unusual. */
export const ANOMALY_KINDS = [
  "rate_spike",
  "rate_drop",
  "size_spike",
  "field_missing",
  "field_new",
  "type_changed",
  "not_json",
] as const;
export type AnomalyKind = (typeof ANOMALY_KINDS)[number];

const SEVERITIES = ["low", "medium", "high"] as const;
export type Severity = (typeof SEVERITIES)[number];

/** Anomalies that are kept; those that last go last. */
const KEPT_MAX = 100;

/** An anomaly as it is stored and as the API shows it. Names and types only, never values of messages. */
export const anomalyAnswer = z
  .object({
    id: z.string(),
    kind: z.enum(ANOMALY_KINDS),
    path: z.string().exactOptional().describe("Such as `customer.orders[].id`."),
    since: z.int().describe("Epoch ms."),
    until: z.int().nullable().describe("Epoch ms; null while it lasts."),
    severity: z.enum(SEVERITIES),
    observed: z.union([z.number(), z.string()]).describe("A rate, a size, a share or a type."),
    expected: z.union([z.number(), z.string()]),
    detail: z.string(),
  })
  .meta({ id: "Anomaly" });
export type Anomaly = z.infer<typeof anomalyAnswer>;

/** A finding of one sample. */
export interface Finding extends Pick<Anomaly, "kind" | "severity" | "observed" | "expected"> {
  readonly path?: string;
  /** Epoch ms. */
  readonly since: number;
  readonly detail: string;
}

/** The anomalies of one topic. */
export class AnomalyLog {
  readonly #ids: Pick<IdSource, "uuid">;
  /** Oldest first. */
  #anomalies: Anomaly[];

  constructor(ids: Pick<IdSource, "uuid">, anomalies: readonly Anomaly[] = []) {
    this.#ids = ids;
    this.#anomalies = [...anomalies];
  }

  /**
   * Takes all findings of a sample of these kinds: new ones begin an anomaly, and those of before that are not among them end
   * theirs.
   */
  update(kinds: readonly AnomalyKind[], findings: readonly Finding[], nowMs: number): void {
    const lasting = new Map<string, Anomaly>();
    for (const anomaly of this.#anomalies) {
      if (anomaly.until === null && kinds.includes(anomaly.kind))
        lasting.set(keyOf(anomaly), anomaly);
    }
    for (const finding of findings) {
      const known = lasting.get(keyOf(finding));
      lasting.delete(keyOf(finding));
      if (known !== undefined) {
        const { observed, detail } = finding;
        Object.assign(known, {
          observed,
          detail,
          severity: worse(known.severity, finding.severity),
        });
        continue;
      }
      this.#anomalies.push({ id: this.#ids.uuid(), ...finding, until: null });
    }
    for (const ended of lasting.values()) ended.until = nowMs;
    if (this.#anomalies.length > KEPT_MAX) this.#drop();
  }

  /** The kinds of those that last. */
  *lasting(): Generator<AnomalyKind> {
    for (const { kind, until } of this.#anomalies) if (until === null) yield kind;
  }

  /** Newest first. */
  list(): readonly Anomaly[] {
    return this.#anomalies.toReversed();
  }

  #drop(): void {
    let over = this.#anomalies.length - KEPT_MAX;
    this.#anomalies = this.#anomalies.filter(({ until }) => until === null || over-- <= 0);
    this.#anomalies.splice(0, this.#anomalies.length - KEPT_MAX);
  }
}

function keyOf({ kind, path }: { kind: AnomalyKind; path?: string }): string {
  return `${kind} ${path ?? ""}`;
}

function worse(one: Severity, other: Severity): Severity {
  return SEVERITIES.indexOf(one) < SEVERITIES.indexOf(other) ? other : one;
}
