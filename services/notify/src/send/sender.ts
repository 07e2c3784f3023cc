// Sends messages: checks, suppression list, content, durable queue; then waits for the relay for a short time.
import { isUniqueViolation } from "@platform/kernel/db";
import { createRetryLaterError, PlatformError } from "@platform/kernel/errors";
import type { IdSource } from "@platform/kernel/ids";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { Span, Tracer } from "@platform/kernel/trace";
import { parseMailbox, toAddressKey, type Mailbox } from "../address/mailbox.ts";
import type { DeliveryRow, MessageRow } from "../database/message.ts";
import type { DeliveryResult } from "../delivery.ts";
import { composeMessage } from "../message/compose.ts";
import type { NotifyMetrics } from "../metrics.ts";
import type { PushSubscriptions } from "../push/subscriptions.ts";
import { LEASE_MS, type Dispatcher } from "../queue/dispatcher.ts";
import { toDelivery, toLoadedMessage, type QueueStore } from "../queue/store.ts";
import type { Suppressions } from "../suppression/suppressions.ts";
import type { Rendered, RenderOptions, Templates } from "../template/templates.ts";
import type { Tracking } from "../tracking/tracking.ts";
import type { Unsubscribes } from "../unsubscribe/unsubscribes.ts";
import { createAnswer, type RecipientResult, type SendAnswer } from "./answer.ts";
import { createDraft, type Draft } from "./draft.ts";
import { hashRequest, toIdempotencyRow, type Idempotency } from "./idempotency.ts";
import { createPushDraft } from "./push.ts";
import { listRecipients } from "./recipients.ts";
import type { SendRequest, TemplateRequest } from "./request.ts";
import { createSmsDraft } from "./sms.ts";
import { chooseTracking } from "./tracking-choice.ts";
import { readExpiry, readSendAt } from "./times.ts";
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
  unsubscribes: Unsubscribes;
  tracking: Tracking;
  subscriptions: PushSubscriptions;
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
  /** Facts of a template request: the id that its links name, and the hash of the request before it was rendered. */
  template?:
    | { name: string; warnings: readonly string[]; messageId: string; hash: string }
    | undefined;
}

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
    const attributes = { "notify.channel": request.channel, "notify.stream": request.stream };
    const parent = context.span.context;
    const span = this.#options.tracer.startSpan({ name: "notify.send", parent, attributes });
    try {
      const answer = await this.#sendWithKey(request, { ...context, span });
      span.setAttribute("notify.status", String(answer.body["status"]));
      return answer;
    } catch (error) {
      span.setStatus("error");
      throw error;
    } finally {
      span.end();
    }
  }

  async #sendWithKey(request: SendRequest, context: SendContext): Promise<SendAnswer> {
    const { idempotency } = this.#options;
    const { client, idempotencyKey: key, template } = context;
    if (key === undefined) return this.#sendOnce(request, context, undefined);
    const hash = template?.hash ?? hashRequest(request);
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
    const { template: name, variables, locale, strict, ...rest } = request;
    const messageId = this.#options.ids.uuid();
    const options = {
      name,
      locale,
      client: context.client,
      variables: { ...this.#createVariables(request, messageId), ...variables },
      isStrict: strict,
    };
    const { warnings, subject, html, text } = await this.#render(options, context.span);
    const prefix = context.subjectPrefix ?? "";
    const content = {
      ...(rest.channel === "sms" ? {} : { subject: `${prefix}${subject}` }),
      ...(rest.channel === "email" ? { html } : {}),
      text,
    };
    // Rendering is not always repeatable: repetitions are recognized by the request.
    const template = { name, warnings, messageId, hash: hashRequest(request) };
    return this.send({ ...rest, ...content }, { ...context, template });
  }

  async #render(options: RenderOptions, { context: parent }: Span): Promise<Rendered> {
    const { tracer, templates, metrics } = this.#options;
    const attributes = { "notify.template": options.name };
    const span = tracer.startSpan({ name: "notify.template.render", parent, attributes });
    try {
      const rendered = await templates.render(options);
      metrics.countRendered();
      return rendered;
    } catch (error) {
      span.setStatus("error");
      throw error;
    } finally {
      span.end();
    }
  }

  // The link is that of one recipient: a message to several has none in its text.
  #createVariables(request: TemplateRequest, messageId: string): Record<string, unknown> {
    const { unsubscribes } = this.#options;
    const { stream, channel, to, cc, bcc } = request;
    const recipients = [to, cc, bcc].flat();
    if (stream !== "bulk" || channel !== "email" || recipients.length !== 1) return {};
    const found = parseMailbox(recipients[0]!);
    if (!found.ok || !unsubscribes.isAvailable) return {};
    const { address } = found.mailbox;
    return { unsubscribe_url: unsubscribes.formatUrl({ address, messageId, position: 0 }) };
  }

  async #sendOnce(
    request: SendRequest,
    context: SendContext,
    idempotency: { key: string; hash: string } | undefined,
  ): Promise<SendAnswer> {
    const { clock, ids, store, dispatcher, waitMs, log } = this.#options;
    const nowMs = clock.now();
    const sendAt = readSendAt(request, nowMs, context.path);
    const expiresAt = readExpiry(request, sendAt ?? nowMs, context.path);
    await this.#checkQueue();
    const id = context.template?.messageId ?? ids.uuid();
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
      expires_at: expiresAt,
      trace_id: context.span.context.traceId,
    };
    const loaded = toLoadedMessage(message, content);
    const queueClass = request.stream === "transactional" ? 0 : 1;
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
    if (request.channel === "push") return this.#preparePush(request, context, id);
    const { fromDomain, attachmentBytesMax } = this.#options;
    const defaultFrom = fromDomain === undefined ? undefined : `no-reply@${fromDomain}`;
    const draft = createDraft(request, { defaultFrom, attachmentBytesMax }, context.path);
    this.#checkSender(draft.from, context);
    this.#checkBulk(request, context);
    const { recipients, suppressed } = await this.#removeSuppressed(draft, request, context);
    const headerId = `<${id}@${draft.from.domain}>`;
    const html = this.#track(draft, request, context, id);
    const content = composeMessage({ ...draft, html, headerId, dateMs: nowMs });
    return { draft, recipients, suppressed, content, headerId };
  }

  #prepareSms(request: SendRequest, { path }: SendContext, id: string) {
    const { recipients, content, ...draft } = createSmsDraft(request, path);
    if (this.#options.hasSms) return { draft, recipients, suppressed: [], content, headerId: id };
    const detail = "SMS cannot be sent: no gateway is configured (sms.preset, sms.url).";
    throw new PlatformError("channel_unavailable", detail, { status: 422 });
  }

  async #preparePush(request: SendRequest, { client, path }: SendContext, messageId: string) {
    const { subscriptions } = this.#options;
    const options = { messageId, client, subscriptions, path };
    const { recipients, content, ...draft } = await createPushDraft(request, options);
    return { draft, recipients, suppressed: [], content, headerId: messageId };
  }

  #checkSender(from: Mailbox, { isOperator, path }: SendContext): void {
    const { allowedDomains, checkAlignment } = this.#options;
    checkAlignment(from.domain);
    if (isOperator || allowedDomains === undefined || allowedDomains().has(from.domain)) return;
    throw new PlatformError("forbidden", `${path}from: the domain ${from.domain} is not allowed.`);
  }

  #track(draft: Draft, request: SendRequest, { path }: SendContext, id: string) {
    const { tracking } = this.#options;
    const choice = chooseTracking(request, draft, tracking, path);
    const isTracked = draft.html !== undefined && (choice.opens || choice.clicks);
    return isTracked ? tracking.apply(draft.html!, id, choice) : draft.html;
  }

  // Receivers refuse bulk mail without a way to unsubscribe, and recipients report it as spam.
  #checkBulk({ stream }: SendRequest, { path }: SendContext): void {
    if (stream !== "bulk" || this.#options.unsubscribes.isAvailable) return;
    throw new PlatformError(
      "unprocessable",
      `${path}stream: bulk messages require public_url (PLATFORM_NOTIFY_PUBLIC_URL), for their unsubscribe links.`,
    );
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
    const isSuppressed = ({ mailbox }: (typeof all)[number]): boolean =>
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
