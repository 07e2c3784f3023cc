// Sends the content of a stored message again.
import { PlatformError } from "@platform/kernel/errors";
import { createValidationError } from "@platform/kernel/http";
import type { IdSource } from "@platform/kernel/ids";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { Span } from "@platform/kernel/trace";
import { parseMailbox, toAddressKey } from "../address/mailbox.ts";
import type { DeliveryRow, MessageRow } from "../database/message.ts";
import { toTraceColumns } from "../database/trace.ts";
import { formatDate } from "../message/compose.ts";
import { replaceFields } from "../message/header-fields.ts";
import { formatMailboxField, formatRawField } from "../message/header.ts";
import type { Acceptance } from "./acceptance.ts";
import type { SendAnswer } from "./answer.ts";
import { hashRequest, type Idempotency, type UsedKey } from "./idempotency.ts";
import type { Recipient } from "./recipients.ts";
import type { ResendRequest } from "./request.ts";
import type { SendContext, Sender } from "./sender.ts";
import type { StoredContent, StoredContents } from "./stored-content.ts";
import type { SuppressionCheck } from "./suppression-check.ts";

/** Options of {@link Resender}. */
export interface ResenderOptions {
  acceptance: Acceptance;
  contents: StoredContents;
  idempotency: Idempotency;
  sender: Pick<Sender, "checkDomain">;
  suppressions: SuppressionCheck;
  clock: Clock;
  ids: IdSource;
  log: Logger;
}

/** The message to repeat and the caller. */
export interface ResendContext extends Pick<
  SendContext,
  "client" | "isOperator" | "idempotencyKey"
> {
  messageId: string;
  /** Client whose messages the caller may see; undefined for all. */
  visibleClient: string | undefined;
  /** Name of the caller in the event of the original. */
  actor: string;
  span: Span;
}

/** Sends messages again. */
export class Resender {
  readonly #options: ResenderOptions;

  constructor(options: ResenderOptions) {
    this.#options = options;
  }

  /**
   * Sends a message again, to its recipients or to others, as a new message with a Message-ID of its own: receivers drop a
   * repeated one. Throws like `Sender.send`, `not_found`, and `conflict` if the content is sensitive or erased.
   */
  async resend(request: ResendRequest, context: ResendContext): Promise<SendAnswer> {
    const { client, idempotencyKey: key, messageId } = context;
    if (key === undefined) return this.#resendOnce(request, context, undefined);
    const used = { client, key, hash: hashRequest({ ...request, resent_from: messageId }) };
    return this.#options.idempotency.run(used, () => this.#resendOnce(request, context, used));
  }

  async #resendOnce(
    request: ResendRequest,
    context: ResendContext,
    idempotency: UsedKey | undefined,
  ): Promise<SendAnswer> {
    const { acceptance, contents, sender, suppressions, clock, ids, log } = this.#options;
    await acceptance.checkQueue();
    const original = await contents.read(context.messageId, context.visibleClient);
    const nowMs = clock.now();
    const wanted = chooseRecipients(original, request, nowMs);
    const { message: source } = original;
    const isMail = source.channel === "email";
    const domain = source.sender.slice(source.sender.lastIndexOf("@") + 1);
    if (isMail) sender.checkDomain(domain, { isOperator: context.isOperator, path: "" });
    const { recipients, suppressed } = isMail
      ? await suppressions.apply(wanted, source.stream, context.span)
      : { recipients: wanted, suppressed: [] };
    const id = ids.uuid();
    const headerId = isMail ? `<${id}@${domain}>` : id;
    const content = isMail
      ? rewrite(original.content, {
          headerId,
          nowMs,
          to: request.to === undefined ? undefined : recipients,
        })
      : original.content;
    const message: MessageRow = {
      ...source,
      id,
      header_id: headerId,
      size_bytes: content.length,
      created_at: nowMs,
      send_at: null,
      trace_id: context.span.context.traceId,
      ...toTraceColumns(context.span.context),
      resent_from: source.id,
    };
    const { variables, warnings } = original;
    const event = { position: null, at: nowMs, event_key: null };
    log.info("message sent again", {
      message_id: id,
      resent_from: source.id,
      actor: context.actor,
      trace_id: message.trace_id,
    });
    const answer = await acceptance.accept({
      message,
      body: {
        content,
        variables: variables === undefined ? null : JSON.stringify(variables),
        warnings: warnings.length === 0 ? null : JSON.stringify(warnings),
      },
      recipients,
      idempotency,
      events: [
        { ...event, message_id: source.id, type: "resent", detail: `as ${id} by ${context.actor}` },
        { ...event, message_id: id, type: "resend_of", detail: source.id },
      ],
      answer: { suppressed },
    });
    return { ...answer, body: { ...answer.body, resent_from: source.id } };
  }
}

function chooseRecipients(
  { message, deliveries }: StoredContent,
  { to }: ResendRequest,
  nowMs: number,
): Recipient[] {
  if (message.channel === "push") refuse("channel", "Push messages cannot be sent again.");
  if (message.expires_at !== null && message.expires_at <= nowMs) {
    refuse("expired", "The message has expired: it must not be sent any more.");
  }
  if (to === undefined) {
    if (deliveries.some((one) => one.due_at !== null)) {
      refuse("in_queue", "The message is still in the queue: it is being delivered.");
    }
    return deliveries.map(toRecipient);
  }
  if (message.channel !== "email") fail("to", "only mail can be sent to other recipients");
  const texts = typeof to === "string" ? [to] : to;
  const seen = new Set<string>();
  const recipients = texts.flatMap((text, index): Recipient[] => {
    const found = parseMailbox(text);
    if (!found.ok) return fail(typeof to === "string" ? "to" : `to.${index}`, found.reason);
    const key = toAddressKey(found.mailbox.address);
    if (seen.has(key)) return [];
    seen.add(key);
    return [{ kind: "to", mailbox: found.mailbox }];
  });
  const known = new Set(deliveries.map(({ address }) => toAddressKey(address)));
  // Its text may contain the unsubscribe link of its recipient, which another one must not have.
  if (message.stream === "bulk" && [...seen].some((key) => !known.has(key))) {
    refuse(
      "personal_links",
      "A bulk message has the unsubscribe link of its recipient: it can only be sent to the same recipients again.",
    );
  }
  return recipients;
}

function toRecipient({ kind, address, domain }: DeliveryRow): Recipient {
  const local = address.slice(0, Math.max(0, address.lastIndexOf("@")));
  return { kind, mailbox: { name: "", local, domain, address } };
}

function rewrite(
  content: Buffer,
  {
    headerId,
    nowMs,
    to,
  }: { headerId: string; nowMs: number; to: readonly Recipient[] | undefined },
): Buffer {
  const fields = new Map([
    ["message-id", formatRawField("Message-ID", headerId)],
    ["date", formatRawField("Date", formatDate(nowMs))],
  ]);
  if (to !== undefined) {
    const mailboxes = to.map(({ mailbox }) => mailbox);
    fields.set("to", formatMailboxField("To", mailboxes)).set("cc", "");
  }
  return replaceFields(content, fields);
}

function refuse(reason: string, detail: string): never {
  throw new PlatformError("conflict", detail, { fields: { reason } });
}

function fail(path: string, message: string): never {
  throw createValidationError([{ in: "body", path, message }]);
}
