// Conditions that need an operator: failing health checks, warnings, and those that a service adds.
import type { HealthRegistry } from "../health/index.ts";
import type { Clock } from "../time/index.ts";

/** Severity of a condition. */
type AttentionLevel = "warning" | "critical";

/** A condition as a service reports it. */
export interface Condition {
  /** Stable while the condition lasts. */
  id: string;
  level: AttentionLevel;
  /** A short sentence. */
  title: string;
  /** The cause and the remedy. */
  detail: string;
  /** Path in the console. */
  href?: string;
}

/** A condition with the time at which it was first seen, RFC 3339. */
export interface AttentionItem extends Condition {
  since: string;
  service: string;
}

const ITEMS_MAX = 100;

/** Lists the current conditions of a service. */
export class Attention {
  readonly #service: string;
  readonly #health: HealthRegistry;
  readonly #clock: Clock;
  readonly #sources: readonly (() => readonly Condition[])[];
  readonly #since = new Map<string, number>();
  #items: readonly AttentionItem[] = [];
  #text = "[]";

  constructor(options: {
    service: string;
    health: HealthRegistry;
    clock: Clock;
    sources: readonly (() => readonly Condition[])[];
  }) {
    this.#service = options.service;
    this.#health = options.health;
    this.#clock = options.clock;
    this.#sources = options.sources;
  }

  /** The conditions at the last `refresh`, most severe and oldest first; at most 100. */
  get items(): readonly AttentionItem[] {
    return this.#items;
  }

  /** Asks all sources again; true if the list has changed. */
  async refresh(): Promise<boolean> {
    const conditions = [...(await this.#readHealth()), ...this.#sources.flatMap((read) => read())];
    const nowMs = this.#clock.now();
    const kept = new Map(conditions.map((condition) => [condition.id, condition]));
    for (const id of this.#since.keys()) if (!kept.has(id)) this.#since.delete(id);
    const items = [...kept.values()].slice(0, ITEMS_MAX).map((condition) => {
      const sinceMs = this.#since.get(condition.id) ?? nowMs;
      this.#since.set(condition.id, sinceMs);
      return { ...condition, service: this.#service, since: new Date(sinceMs).toISOString() };
    });
    this.#items = items.sort(compareItems);
    const text = JSON.stringify(this.#items);
    const hasChanged = text !== this.#text;
    this.#text = text;
    return hasChanged;
  }

  async #readHealth(): Promise<Condition[]> {
    const { body } = await this.#health.ready();
    const down = Object.entries(body.checks ?? {}).flatMap(([name, { status, detail = "" }]) =>
      status === "UP"
        ? []
        : [describeHealth(`check:${name}`, "critical", `${name} is down`, detail)],
    );
    const warnings = Object.entries(body.warnings ?? {}).map(([name, detail]) =>
      describeHealth(`warning:${name}`, "warning", `${name}: warning`, detail),
    );
    return [...down, ...warnings];
  }
}

function describeHealth(
  id: string,
  level: AttentionLevel,
  title: string,
  detail: string,
): Condition {
  return { id, level, title, detail };
}

function compareItems(one: AttentionItem, other: AttentionItem): number {
  if (one.level !== other.level) return one.level === "critical" ? -1 : 1;
  return one.since.localeCompare(other.since) || one.id.localeCompare(other.id);
}
