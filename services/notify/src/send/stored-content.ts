// Contents of stored messages: as they are kept, and as the first recipient gets them.
import { PlatformError } from "@platform/kernel/errors";
import { requireWhole, sumBody } from "../database/checksum.ts";
import type { DeliveryRow, MessageRow } from "../database/message.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import { toDelivery, toLoadedMessage } from "../queue/store.ts";
import type { PrepareMail } from "../relay/prepare.ts";
import type { Messages } from "./messages.ts";

/** Options of {@link StoredContents}. */
export interface StoredContentsOptions {
  database: NotifyDatabase;
  messages: Messages;
  /** Signs a message and adds the fields of its recipient. */
  prepare: PrepareMail;
}

/** A stored message with its content. */
export interface StoredContent {
  message: MessageRow;
  deliveries: readonly DeliveryRow[];
  content: Buffer;
  /** Variables of the template; undefined without one, or if they were too large to be kept. */
  variables: Record<string, unknown> | undefined;
  /** Warnings of rendering. */
  warnings: readonly string[];
}

/** A mail in the form in which it is sent. */
export interface SentMail extends StoredContent {
  /** Sender of the envelope. */
  envelopeSender: string;
  bytes: Buffer;
}

export class StoredContents {
  readonly #options: StoredContentsOptions;

  constructor(options: StoredContentsOptions) {
    this.#options = options;
  }

  /**
   * Returns a message that `client` may see, all for undefined. Throws `not_found`, and `conflict` for sensitive messages
   * and erased contents.
   */
  async read(id: string, client: string | undefined): Promise<StoredContent> {
    const { database, messages } = this.#options;
    const { message, deliveries } = await messages.get(id, client);
    if (message.sensitive === 1) {
      throw new PlatformError(
        "conflict",
        "The message is sensitive: its content is shown to nobody and erased after its delivery.",
        { fields: { reason: "sensitive" } },
      );
    }
    const body = await database.db
      .selectFrom("notify_bodies")
      .selectAll()
      .where("message_id", "=", id)
      .executeTakeFirst();
    if (body === undefined) {
      throw new PlatformError(
        "conflict",
        "The content of the message was erased after `body_retention_ms`.",
        { fields: { reason: "erased" } },
      );
    }
    requireWhole(database, `the content of message ${id}`, body.checksum, sumBody(message, body));
    const { content, variables, warnings } = body;
    return {
      message,
      deliveries,
      content: Buffer.from(content.buffer, content.byteOffset, content.byteLength),
      variables: variables === null ? undefined : JSON.parse(variables),
      warnings: warnings === null ? [] : JSON.parse(warnings),
    };
  }

  /** Returns a mail as its first recipient gets it. Throws like `read`, and `conflict` for other channels. */
  async readMail(id: string, client: string | undefined): Promise<SentMail> {
    const stored = await this.read(id, client);
    const { message, deliveries, content } = stored;
    if (message.channel !== "email") {
      throw new PlatformError("conflict", "Only mail has such a form.", {
        fields: { reason: "channel" },
      });
    }
    const first = toDelivery(deliveries[0]!, toLoadedMessage(message, content), 0);
    const { envelope, parts } = await this.#options.prepare(first);
    return { ...stored, envelopeSender: envelope.sender, bytes: Buffer.concat(parts) };
  }
}
