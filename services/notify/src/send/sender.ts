// Sends messages: checks, suppression list, content, durable queue; then waits for the relay for a short time.
import { createHash } from "node:crypto";
import { isUniqueViolation } from "@platform/kernel/db";
import { createRetryLaterError, PlatformError } from "@platform/kernel/errors";
import { createValidationError } from "@platform/kernel/http";
import type { IdSource } from "@platform/kernel/ids";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { Span, Tracer } from "@platform/kernel/trace";
import { toAddressKey, type Mailbox } from "../address/mailbox.ts";
import type { DeliveryRow, IdempotencyRow, MessageRow } from "../database/message.ts";
import type { DeliveryResult } from "../delivery.ts";
import { composeMessage } from "../message/compose.ts";
import type { NotifyMetrics } from "../metrics.ts";
import { LEASE_MS, type Dispatcher } from "../queue/dispatcher.ts";
import { toDelivery, toLoadedMessage, type QueueStore } from "../queue/store.ts";
import type { Suppressions } from "../suppression/suppressions.ts";
import type { Templates } from "../template/templates.ts";
import { createAnswer, type RecipientResult, type SendAnswer } from "./answer.ts";
import { createDraft, type Draft } from "./draft.ts";
import type { Idempotency } from "./idempotency.ts";
import type { SendRequest, TemplateRequest } from "./request.ts";
import { Waiters } from "./waiters.ts";

/** Options of {@link Sender}. */
export interface SenderOptions {
  store: QueueStore;
  dispatcher: Dispatcher;
  suppressions: Suppressions;
  idempotency: Idempotency;
  templates: Templates;
  metrics: NotifyMetrics;
  tracer: Tracer;
  clock: Clock;
  ids: IdSource;
  log: Logger;
  /** Domain of the default sender and of Message-ID; undefined if it is not configured. */
  fromDomain: string | undefined;
  /** Domains that `from` may have; undefined for all. */
  allowedDomains: (() => ReadonlySet<string>) | undefined;
  /** Throws if mail of a domain would fail DMARC and that is not allowed. */
  checkAlignment: (domain: string) => void;
  /** False if no SMS can be sent. */
  hasSms: boolean;
  waitMs: number;
  attachmentBytesMax: number;
  bodyRetentionMs: number;
  /** Maximum number of deliveries that have not ended. */
  queueMax: number;
}

/** The sender of a request. */
export interface SendContext {
  /** "" for the operator. */
  client: string;
  /** True if any sender domain is allowed. */
  isOperator: boolean;
  idempotencyKey: string | undefined;
  span: Span;
  /** Place of the request in the body, such as `messages.3.`. */
  path: string;
  /** Text in front of the subject of a template. */
  subjectPrefix?: string | undefined;
  /** Template, variant and warnings of a template request. */
  template?: { name: string; warnings: readonly string[] } | undefined;
}

interface Recipient {
  kind: DeliveryRow["kind"];
  mailbox: Mailbox;
}

const SEND_AHEAD_MS_MAX = 30 * 86_400_000;
const E164 = /^\+[1-9]\d{6,14}$/;
const SMS_CHARACTERS_MAX = 1_600;
const COUNT_REUSE_MS = 500;

/** Accepts messages. */
export class Sender {
  readonly #options: SenderOptions;
  readonly #waiters = new Waiters();
  #open: { count: number; atMs: number } | undefined;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Passes the result of an attempt to the request that waits for it. */
  noteResult(result: DeliveryResult): void {
    this.#waiters.note(result);
  }

  /** Sends a message. Throws PlatformError if it is invalid, suppressed or rejected. */
  async send(request: SendRequest, context: SendContext): Promise<SendAnswer> {
    const { idempotency } = this.#options;
    const { client, idempotencyKey: key, template } = context;
    if (key === undefined) return this.#sendOnce(request, context, undefined);
    const hash = hashRequest(request, template?.name);
    const known = await idempotency.find(client, key, hash);
    if (known !== undefined) return known;
    try {
      const answer = await this.#sendOnce(request, context, { key, hash });
      await idempotency.saveAnswer(client, key, answer);
      return answer;
    } catch (error) {
      if (isUniqueViolation(error)) {
        const first = await idempotency.find(client, key, hash);
        if (first !== undefined) return first;
      }
      if (error instanceof PlatformError) await idempotency.saveError(client, key, error);
      throw error;
    }
  }

  /** Renders a template and sends it. Throws like `send`, and `not_found` or `template_failed`. */
  async sendTemplate(request: TemplateRequest, context: SendContext): Promise<SendAnswer> {
    const { tracer, templates, metrics } = this.#options;
    const { template: name, variables, locale, strict, ...rest } = request;
    const span = tracer.startSpan({
      name: "notify.template.render",
      parent: context.span.context,
      attributes: { "notify.template": name },
    });
    try {
      const options = { name, locale, variables, isStrict: strict };
      const { warnings, subject, html, text } = await templates.render(options);
      metrics.countRendered();
      const isSms = rest.channel === "sms";
      const prefix = context.subjectPrefix ?? "";
      const content = isSms ? { text } : { subject: `${prefix}${subject}`, html, text };
      return await this.send({ ...rest, ...content }, { ...context, template: { name, warnings } });
    } catch (error) {
      span.setStatus("error");
      throw error;
    } finally {
      span.end();
    }
  }

  async #sendOnce(
    request: SendRequest,
    context: SendContext,
    idempotency: { key: string; hash: string } | undefined,
  ): Promise<SendAnswer> {
    const { clock, ids, store, dispatcher, waitMs, log } = this.#options;
    const nowMs = clock.now();
    const sendAt = this.#readSendAt(request, nowMs, context.path);
    await this.#checkQueue();
    const id = ids.uuid();
    const { draft, recipients, suppressed, content, headerId } = await this.#prepare(
      request,
      context,
      id,
      nowMs,
    );
    const message: MessageRow = {
      id,
      channel: request.channel,
      client: context.client,
      stream: request.stream,
      sender: draft.from.address,
      subject: draft.subject,
      template: context.template?.name ?? null,
      header_id: headerId,
      tags: request.tags.length === 0 ? null : JSON.stringify(request.tags),
      metadata:
        Object.keys(request.metadata).length === 0 ? null : JSON.stringify(request.metadata),
      size_bytes: content.length,
      sensitive: request.sensitive ? 1 : 0,
      created_at: nowMs,
      send_at: sendAt ?? null,
      trace_id: context.span.context.traceId,
    };
    const loaded = toLoadedMessage(message, content);
    const queueClass = request.stream === "bulk" ? 1 : 0;
    const leaseUntil = nowMs + LEASE_MS;
    const deliveries = recipients.map(({ kind, mailbox }, position): DeliveryRow => {
      const isReady =
        sendAt === undefined && dispatcher.hasRoom(queueClass, context.client, mailbox.domain);
      return {
        message_id: id,
        position,
        kind,
        address: mailbox.address,
        domain: mailbox.domain,
        client: context.client,
        class: queueClass,
        status: "queued",
        attempts: 0,
        fence: isReady ? 1 : 0,
        due_at: isReady ? leaseUntil : (sendAt ?? nowMs),
        leased: isReady ? 1 : 0,
        code: null,
        enhanced: null,
        detail: null,
        relay: null,
        updated_at: nowMs,
      };
    });
    const row = idempotency === undefined ? undefined : toIdempotencyRow(message, idempotency);
    const body = {
      message_id: id,
      content,
      expires_at: (sendAt ?? nowMs) + this.#options.bodyRetentionMs,
    };
    await store.insert({ message, body, deliveries, idempotency: row });
    log.info("message accepted", {
      message_id: id,
      to: recipients.map(({ mailbox }) => mailbox.address).join(", "),
      template: message.template ?? "",
      channel: message.channel,
      status: "queued",
      trace_id: message.trace_id,
    });
    const ready = deliveries.filter(({ leased }) => leased === 1);
    if (ready.length < deliveries.length) dispatcher.noteBacklog();
    const wait =
      ready.length === 0
        ? undefined
        : this.#waiters.wait(
            id,
            ready.map(({ position }) => position),
            waitMs,
          );
    for (const delivery of ready) {
      dispatcher.add(toDelivery({ ...delivery, leased: 0 }, loaded, leaseUntil));
    }
    const results = (await wait) ?? [];
    return createAnswer({
      messageId: id,
      deliveredAtMs: clock.now(),
      recipients: toRecipientResults(deliveries, results),
      suppressed,
      template: context.template,
    });
  }

  // Everything that can refuse the message, before anything is stored.
  async #prepare(request: SendRequest, context: SendContext, id: string, nowMs: number) {
    if (request.channel === "sms") return this.#prepareSms(request, context, id);
    const { fromDomain, attachmentBytesMax } = this.#options;
    const defaultFrom = fromDomain === undefined ? undefined : `no-reply@${fromDomain}`;
    const draft = createDraft(request, { defaultFrom, attachmentBytesMax }, context.path);
    this.#checkSender(draft.from, context);
    const { recipients, suppressed } = await this.#removeSuppressed(draft, request, context);
    const headerId = `<${id}@${draft.from.domain}>`;
    const content = composeMessage({ ...draft, headerId, dateMs: nowMs });
    return { draft, recipients, suppressed, content, headerId };
  }

  async #prepareSms(request: SendRequest, { path }: SendContext, id: string) {
    const fail = (field: string, message: string): never => {
      throw createValidationError([{ in: "body", path: `${path}${field}`, message }]);
    };
    for (const field of ["html", "subject", "reply_to"] as const) {
      if (request[field] !== undefined) fail(field, "not allowed for SMS");
    }
    for (const field of ["cc", "bcc", "attachments"] as const) {
      if (request[field].length > 0) fail(field, "not allowed for SMS");
    }
    const { text, to } = request;
    if (typeof to !== "string" || !E164.test(to)) {
      return fail("to", "for SMS a number in E.164 form, such as +4930123456");
    }
    if (text === undefined || text === "") return fail("text", "required for SMS");
    if (text.length > SMS_CHARACTERS_MAX) fail("text", `at most ${SMS_CHARACTERS_MAX} characters`);
    if (!this.#options.hasSms) {
      throw new PlatformError(
        "channel_unavailable",
        "SMS cannot be sent: no gateway is configured.",
      );
    }
    const number: Mailbox = { name: "", local: to, domain: "", address: to };
    const from: Mailbox = { name: "", local: "", domain: "", address: request.from ?? "" };
    const recipients: Recipient[] = [{ kind: "to", mailbox: number }];
    const draft = { from, subject: "" };
    return { draft, recipients, suppressed: [], content: Buffer.from(text), headerId: id };
  }

  #checkSender(from: Mailbox, { isOperator, path }: SendContext): void {
    const { allowedDomains, checkAlignment } = this.#options;
    checkAlignment(from.domain);
    if (isOperator || allowedDomains === undefined || allowedDomains().has(from.domain)) return;
    throw new PlatformError("forbidden", `${path}from: the domain ${from.domain} is not allowed.`);
  }

  async #removeSuppressed(draft: Draft, request: SendRequest, { span }: SendContext) {
    const { suppressions, tracer, metrics } = this.#options;
    const all = listRecipients(draft);
    const check = tracer.startSpan({ name: "notify.suppression.check", parent: span.context });
    const found = await suppressions.find(
      all.map(({ mailbox }) => mailbox.address),
      request.stream,
    );
    check.setAttribute("notify.suppressed", found.size);
    check.end();
    if (found.size === 0) return { recipients: all, suppressed: [] };
    const isSuppressed = ({ mailbox }: Recipient): boolean =>
      found.has(toAddressKey(mailbox.address));
    const suppressed = all.filter(isSuppressed).map(({ mailbox }) => mailbox.address);
    const recipients = all.filter((recipient) => !isSuppressed(recipient));
    metrics.countSuppressed(suppressed.length);
    if (recipients.some(({ kind }) => kind === "to")) return { recipients, suppressed };
    const [first] = found.values();
    throw new PlatformError(
      "recipient_suppressed",
      `The address ${first!.address} is on the suppression list (${first!.reason}).`,
      { fields: { delivery_status: "suppressed", suppressed, reason: first!.reason } },
    );
  }

  #readSendAt({ send_at: text }: SendRequest, nowMs: number, path: string): number | undefined {
    if (text === undefined) return undefined;
    const atMs = Date.parse(text);
    if (atMs - nowMs <= SEND_AHEAD_MS_MAX) return atMs > nowMs ? atMs : undefined;
    const message = "at most 30 days ahead";
    throw createValidationError([{ in: "body", path: `${path}send_at`, message }]);
  }

  async #checkQueue(): Promise<void> {
    const { clock, store, queueMax } = this.#options;
    const nowMs = clock.monotonicMs();
    if (this.#open === undefined || nowMs - this.#open.atMs > COUNT_REUSE_MS) {
      this.#open = { count: await store.countOpen(), atMs: nowMs };
    }
    if (this.#open.count + store.waiting < queueMax) return;
    throw createRetryLaterError("queue_full", "Too many deliveries wait in the queue.", 30);
  }
}

// An address in several fields receives the message once.
function listRecipients({ to, cc, bcc }: Draft): Recipient[] {
  const seen = new Set<string>();
  const all = [
    ...to.map((mailbox) => ({ kind: "to" as const, mailbox })),
    ...cc.map((mailbox) => ({ kind: "cc" as const, mailbox })),
    ...bcc.map((mailbox) => ({ kind: "bcc" as const, mailbox })),
  ];
  return all.filter(({ mailbox }) => {
    const key = toAddressKey(mailbox.address);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

function toRecipientResults(
  deliveries: readonly DeliveryRow[],
  results: readonly DeliveryResult[],
): RecipientResult[] {
  const byPosition = new Map(results.map((result) => [result.delivery.position, result]));
  return deliveries.map(({ position, address }) => {
    const result = byPosition.get(position);
    if (result === undefined) return { address, status: "queued" };
    const { status, reply } = result;
    return { address, status, code: reply.code, enhanced: reply.enhanced, detail: reply.text };
  });
}

function hashRequest(request: SendRequest, template: string | undefined): string {
  return createHash("sha256")
    .update(JSON.stringify([template, request]))
    .digest("hex");
}

function toIdempotencyRow(
  { client, id, created_at }: MessageRow,
  { key, hash }: { key: string; hash: string },
): IdempotencyRow {
  return {
    client,
    key,
    request_hash: hash,
    message_id: id,
    status: null,
    answer: null,
    created_at,
  };
}
