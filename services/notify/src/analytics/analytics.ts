// Figures of deliveries: by day, stream, tag, template or channel.
import { sql } from "kysely";
import { z } from "zod";
import { DELIVERY_STATUSES, type MessageRow } from "../database/message.ts";
import type { NotifyDatabase } from "../database/schema.ts";

/** Dimensions of figures. */
export const DIMENSIONS = ["day", "stream", "tag", "template", "channel"] as const;

type Dimension = (typeof DIMENSIONS)[number];

const EVENT_TYPES = ["opened", "clicked", "unsubscribed", "complained"] as const;

/** Deliveries by status, and those with at least one event of a type; for the API. */
export const figureAnswer = z.object({
  recipients: z.int(),
  queued: z.int(),
  deferred: z.int(),
  sent: z.int(),
  bounced: z.int(),
  failed: z.int(),
  suppressed: z.int(),
  canceled: z.int(),
  opened: z.int(),
  clicked: z.int(),
  unsubscribed: z.int(),
  complained: z.int(),
});

/** Deliveries by status, and those with at least one event of a type. */
export type Figures = z.infer<typeof figureAnswer>;

/** A question: messages accepted from `fromMs` until before `toMs`, of one client or of all. */
export interface AnalyticsQuery {
  fromMs: number;
  toMs: number;
  by: Dimension;
  client: string | undefined;
  stream?: MessageRow["stream"] | undefined;
  template?: string | undefined;
}

/** Figures of one value of the dimension; null for messages without one. */
export interface FigureGroup {
  key: string | null;
  figures: Figures;
}

/** Maximum number of combinations of tags that are read. */
const GROUPS_MAX = 10_000;
const DAY_MS = 86_400_000;

/** Reads figures from the stored messages. */
export class Analytics {
  readonly #database: NotifyDatabase;

  constructor(database: NotifyDatabase) {
    this.#database = database;
  }

  /** Returns the totals, and the figures by the dimension in the order of its values. A message counts for each tag. */
  async read(query: AnalyticsQuery): Promise<{ totals: Figures; groups: FigureGroup[] }> {
    const counts = [...(await this.#countStatuses(query)), ...(await this.#countEvents(query))];
    const totals = createFigures();
    const groups = new Map<string | null, Figures>();
    for (const { key, name, count } of counts) {
      add(totals, name, count);
      for (const one of listKeys(query.by, key)) {
        const figures = groups.get(one) ?? createFigures();
        groups.set(one, figures);
        add(figures, name, count);
      }
    }
    const sorted = [...groups].map(([key, figures]) => ({ key, figures }));
    return { totals, groups: sorted.toSorted((a, b) => ((a.key ?? "") < (b.key ?? "") ? -1 : 1)) };
  }

  async #countStatuses(query: AnalyticsQuery) {
    const key = keyOf(query.by);
    return this.#selectMessages(query)
      .innerJoin("notify_deliveries", "notify_deliveries.message_id", "notify_messages.id")
      .select([
        key.as("key"),
        "notify_deliveries.status as name",
        (eb) => eb.fn.countAll<number>().as("count"),
      ])
      .groupBy([key, "notify_deliveries.status"])
      .limit(GROUPS_MAX)
      .execute();
  }

  async #countEvents(query: AnalyticsQuery) {
    const key = keyOf(query.by);
    const delivery = sql<number>`count(distinct notify_events.message_id || '/' || notify_events.position)`;
    const rows = await this.#selectMessages(query)
      .innerJoin("notify_events", "notify_events.message_id", "notify_messages.id")
      .select([key.as("key"), "notify_events.type as name", delivery.as("count")])
      .where("notify_events.type", "in", EVENT_TYPES)
      .groupBy([key, "notify_events.type"])
      .limit(GROUPS_MAX)
      .execute();
    return rows.map((row) => ({ ...row, name: row.name as (typeof EVENT_TYPES)[number] }));
  }

  #selectMessages({ fromMs, toMs, client, stream, template }: AnalyticsQuery) {
    // The ids sort by time, so that the primary key finds the period; the time decides at its ends.
    let select = this.#database.db
      .selectFrom("notify_messages")
      .where("notify_messages.id", ">=", toIdBound(fromMs))
      .where("notify_messages.id", "<", toIdBound(toMs));
    if (client !== undefined) select = select.where("notify_messages.client", "=", client);
    if (stream !== undefined) select = select.where("notify_messages.stream", "=", stream);
    if (template !== undefined) select = select.where("notify_messages.template", "=", template);
    return select;
  }
}

function keyOf(by: Dimension) {
  switch (by) {
    case "day":
      return sql<string | number | null>`notify_messages.created_at / ${sql.lit(DAY_MS)}`;
    case "stream":
    case "template":
    case "channel":
      return sql<string | number | null>`${sql.ref(`notify_messages.${by}`)}`;
    case "tag":
      return sql<string | number | null>`notify_messages.tags`;
    default:
      return by satisfies never;
  }
}

function listKeys(by: Dimension, key: string | number | null): (string | null)[] {
  if (by === "day") return [new Date(Number(key) * DAY_MS).toISOString().slice(0, 10)];
  if (by !== "tag") return [key === null ? null : String(key)];
  return key === null ? [null] : (JSON.parse(String(key)) as string[]);
}

// The smallest UUID version 7 of a millisecond.
function toIdBound(ms: number): string {
  const hex = ms.toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}

function createFigures(): Figures {
  const names = ["recipients", ...DELIVERY_STATUSES, ...EVENT_TYPES];
  return Object.fromEntries(names.map((name) => [name, 0])) as Figures;
}

function add(figures: Figures, name: keyof Figures, count: number): void {
  figures[name] += count;
  if ((DELIVERY_STATUSES as readonly string[]).includes(name)) figures.recipients += count;
}
