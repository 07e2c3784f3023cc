// Unsubscribing from bulk mail: links per recipient, the header fields of RFC 2369 and RFC 8058, and their effect.
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { NotifyDatabase } from "../database/schema.ts";
import type { Delivery } from "../delivery.ts";
import type { SignedLinks } from "../link/signed-links.ts";
import { formatRawField } from "../message/header.ts";
import type { NotifyMetrics } from "../metrics.ts";
import type { Suppressions } from "../suppression/suppressions.ts";
import type { Webhooks } from "../webhook/webhooks.ts";

/** The delivery whose recipient a link unsubscribes. */
export interface Subscription {
  address: string;
  messageId: string;
  position: number;
  /** True for links of previews and test sends, which change nothing. */
  isSample?: boolean;
}

/** Options of {@link Unsubscribes}. */
export interface UnsubscribesOptions {
  database: NotifyDatabase;
  links: SignedLinks;
  suppressions: Suppressions;
  webhooks: Webhooks;
  metrics: Pick<NotifyMetrics, "countUnsubscribed">;
  clock: Clock;
  log: Logger;
}

/** Links of transactional mail do not exist, so that the stream is always the same. */
const STREAM = "bulk";
const PURPOSE = "unsubscribe";
const SAMPLE = "sample";
const SAMPLE_ADDRESS = "reader@example.org";

/** Unsubscribe links and their effect. */
export class Unsubscribes {
  readonly #options: UnsubscribesOptions;

  constructor(options: UnsubscribesOptions) {
    this.#options = options;
  }

  /** False without a public URL: bulk mail cannot be sent then. */
  get isAvailable(): boolean {
    return this.#options.links.isAvailable;
  }

  /** Returns the link of a recipient. */
  formatUrl({ address, messageId, position }: Subscription): string {
    return this.#options.links.format(PURPOSE, [STREAM, address, messageId, position]);
  }

  /** Returns variables for previews and test sends: a link with the page of a real one that changes nothing. */
  createSampleVariables(): Record<string, string> {
    const { links } = this.#options;
    if (!links.isAvailable) return {};
    return { unsubscribe_url: links.format(PURPOSE, [SAMPLE, SAMPLE_ADDRESS, "", 0]) };
  }

  /**
   * Returns the fields of a delivery with CRLF; "" for transactional mail, and for messages accepted before the public URL
   * was removed. Both fields must be signed (RFC 8058 section 4).
   */
  formatFields({ message, address, position }: Delivery): string {
    if (message.stream !== STREAM || message.channel !== "email" || !this.isAvailable) return "";
    const url = this.formatUrl({ address, messageId: message.id, position });
    return (
      formatRawField("List-Unsubscribe", `<${url}>`) +
      formatRawField("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")
    );
  }

  /** Returns the subscription of a link's token; undefined if the token is invalid. */
  parse(token: string): Subscription | undefined {
    const values = this.#options.links.parse(PURPOSE, token);
    if (values === undefined) return undefined;
    const [stream, address, messageId, position] = values;
    return {
      address: String(address),
      messageId: String(messageId),
      position: Number(position),
      isSample: stream === SAMPLE,
    };
  }

  /** Unsubscribes an address from bulk mail; when this resolves, it is on disk. Repetitions have no effect. */
  async apply({ address, messageId, position, isSample = false }: Subscription): Promise<void> {
    if (isSample) return;
    const { database, suppressions, webhooks, metrics, clock, log } = this.#options;
    const nowMs = clock.now();
    const isNew = await database.transaction(async (trx) => {
      if (!(await suppressions.unsubscribeIn(trx, { address, messageId }, nowMs))) return false;
      const message = await trx
        .selectFrom("notify_messages")
        .select(["template", "tags", "metadata", "traceparent", "tracestate"])
        .where("id", "=", messageId)
        .executeTakeFirst();
      const event = { message_id: messageId, position, type: "unsubscribed", at: nowMs };
      // Links outlive their messages.
      if (message !== undefined) {
        await trx
          .insertInto("notify_events")
          .values({ ...event, detail: null })
          .execute();
      }
      const data = {
        message_id: messageId,
        recipient: address,
        stream: STREAM,
        template: message?.template ?? null,
        tags: JSON.parse(message?.tags ?? "[]") as unknown,
        metadata: JSON.parse(message?.metadata ?? "{}") as unknown,
      };
      await webhooks.addIn(trx, [
        { type: "message.unsubscribed", atMs: nowMs, data, trace: message },
      ]);
      return true;
    });
    if (!isNew) return;
    metrics.countUnsubscribed();
    log.info("unsubscribed", { message_id: messageId, to: address, status: "unsubscribed" });
  }
}
