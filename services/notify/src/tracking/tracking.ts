// Open and click tracking: off unless a message or its stream asks for it.
import { addEventOnce } from "../database/events.ts";
import type { Stream } from "../database/message.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import type { SignedLinks } from "../link/signed-links.ts";
import type { NotifyMetrics } from "../metrics.ts";
import type { Webhooks } from "../webhook/webhooks.ts";
import { isAutomatic, type TrackedRequest } from "./automatic.ts";
import { addTracking } from "./rewrite.ts";

/** Types of events. */
export type TrackedType = "opened" | "clicked";

/** Events that a message reports. */
export interface TrackingChoice {
  opens: boolean;
  clicks: boolean;
}

/** Options of {@link Tracking}. */
export interface TrackingOptions {
  database: NotifyDatabase;
  links: SignedLinks;
  webhooks: Webhooks;
  metrics: Pick<NotifyMetrics, "countTracked">;
  /** Streams that are tracked unless a message says otherwise. */
  opens: readonly Stream[];
  clicks: readonly Stream[];
}

/** An opened or clicked delivery. */
export interface TrackedDelivery {
  messageId: string;
  position: number;
  /** Target of a click. */
  target?: string;
}

type Visit = Omit<TrackedRequest, "sentAtMs" | "otherClickAtMs">;

/** Adds tracking to messages, and records opens and clicks. */
export class Tracking {
  readonly #options: TrackingOptions;

  constructor(options: TrackingOptions) {
    this.#options = options;
  }

  get isAvailable(): boolean {
    return this.#options.links.isAvailable;
  }

  /** Returns the default of a stream. */
  choiceOf(stream: Stream): TrackingChoice {
    const { opens, clicks } = this.#options;
    return { opens: opens.includes(stream), clicks: clicks.includes(stream) };
  }

  /** Adds tracking to the HTML of a message to one recipient. */
  apply(html: string, messageId: string, choice: TrackingChoice): string {
    return addTracking(html, { messageId, ...choice, links: this.#options.links });
  }

  /** Returns the delivery of a token; undefined if the token is invalid. */
  parse(type: TrackedType, token: string): TrackedDelivery | undefined {
    const values = this.#options.links.parse(type === "opened" ? "open" : "click", token);
    if (values === undefined) return undefined;
    const [messageId, position, target] = values;
    const delivery = { messageId: String(messageId), position: Number(position) };
    return target === undefined ? delivery : { ...delivery, target: String(target) };
  }

  /**
   * Records an event unless the request is automatic. A delivery has at most one `opened`, and one `clicked` per target;
   * messages that were deleted have no events.
   */
  async record(type: TrackedType, delivery: TrackedDelivery, visit: Visit): Promise<void> {
    const { database, metrics, webhooks } = this.#options;
    const { messageId, position, target } = delivery;
    const found = await this.#read(delivery);
    if (found === undefined) return;
    const { row, events } = found;
    const isKnown = events.some(
      (event) => event.type === type && event.detail === (target ?? null),
    );
    const others = events.filter((event) => event.type === "clicked" && event.detail !== target);
    const request: TrackedRequest = {
      ...visit,
      sentAtMs: row.status === "sent" ? row.updated_at : undefined,
      otherClickAtMs: type === "clicked" ? others.at(-1)?.at : undefined,
    };
    if (isAutomatic(request)) {
      metrics.countTracked(type, true);
      return;
    }
    if (isKnown) return;
    const event = {
      message_id: messageId,
      position,
      type,
      at: visit.nowMs,
      detail: target ?? null,
    };
    const data = {
      message_id: messageId,
      recipient: row.address,
      stream: row.stream,
      template: row.template,
      tags: JSON.parse(row.tags ?? "[]") as unknown,
      metadata: JSON.parse(row.metadata ?? "{}") as unknown,
      ...(target === undefined ? {} : { url: target }),
    };
    // Several requests may have found no event at the same time: one of them adds it.
    const isNew = await database.transaction(async (trx) => {
      if (!(await addEventOnce(trx, event, target))) return false;
      await webhooks.addIn(trx, [{ type: `message.${type}`, atMs: visit.nowMs, data, trace: row }]);
      return true;
    });
    if (isNew) metrics.countTracked(type, false);
  }

  async #read({ messageId, position }: TrackedDelivery) {
    const { db } = this.#options.database;
    const row = await db
      .selectFrom("notify_deliveries")
      .innerJoin("notify_messages", "notify_messages.id", "notify_deliveries.message_id")
      .select(["address", "status", "updated_at", "stream", "template", "tags", "metadata"])
      .select(["traceparent", "tracestate"])
      .where("message_id", "=", messageId)
      .where("position", "=", position)
      .executeTakeFirst();
    if (row === undefined) return undefined;
    const events = await db
      .selectFrom("notify_events")
      .select(["type", "detail", "at"])
      .where("message_id", "=", messageId)
      .where("position", "=", position)
      .where("type", "in", ["opened", "clicked"])
      .orderBy("id")
      .execute();
    return { row, events };
  }
}
