// Sends messages: checks, suppression list, content, durable queue; then waits for the relay for a short time.
import { PlatformError } from "@platform/kernel/errors";
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import type { Span, Tracer } from "@platform/kernel/trace";
import { parseMailbox } from "../address/mailbox.ts";
import type { MessageRow } from "../database/message.ts";
import { toTraceColumns } from "../database/trace.ts";
import { composeMessage } from "../message/compose.ts";
import type { NotifyMetrics } from "../metrics.ts";
import type { PushSubscriptions } from "../push/subscriptions.ts";
import type { Rendered, RenderOptions, Templates } from "../template/templates.ts";
import type { Tracking } from "../tracking/tracking.ts";
import type { Unsubscribes } from "../unsubscribe/unsubscribes.ts";
import type { Acceptance } from "./acceptance.ts";
import type { SendAnswer } from "./answer.ts";
import { createDraft, type Draft } from "./draft.ts";
import { hashRequest, type Idempotency, type UsedKey } from "./idempotency.ts";
import { createPushDraft } from "./push.ts";
import { listRecipients } from "./recipients.ts";
import type { SendRequest, TemplateRequest } from "./request.ts";
import { createSmsDraft } from "./sms.ts";
import type { SuppressionCheck } from "./suppression-check.ts";
import { chooseTracking } from "./tracking-choice.ts";
import { readExpiry, readSendAt } from "./times.ts";

/** Options of {@link Sender}. */
export interface SenderOptions {
  acceptance: Acceptance;
  suppressions: SuppressionCheck;
  idempotency: Idempotency;
  templates: Templates;
  metrics: NotifyMetrics;
  tracer: Tracer;
  clock: Clock;
  ids: IdSource;
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
  attachmentBytesMax: number;
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
    | {
        name: string;
        warnings: readonly string[];
        variables: Readonly<Record<string, unknown>>;
        messageId: string;
        hash: string;
      }
    | undefined;
}

/** Larger variables are not kept with the message. */
const VARIABLES_CHARACTERS_MAX = 65_536;

/** Accepts messages. */
export class Sender {
  readonly #options: SenderOptions;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Sends a message. Throws PlatformError if it is invalid, suppressed or rejected. */
  async send(request: SendRequest, context: SendContext): Promise<SendAnswer> {
    const attributes = { "notify.channel": request.channel, "notify.stream": request.stream };
    const parent = context.span.context;
    const span = this.#options.tracer.startSpan({ name: "notify.send", parent, attributes });
    try {
      const answer = await this.#sendWithKey(request, { ...context, span });
      span.setAttribute("notify.status", answer.body.status);
      return answer;
    } catch (error) {
      span.setStatus("error");
      throw error;
    } finally {
      span.end();
    }
  }

  /** Throws `forbidden` if a caller may not send from a domain, and `unprocessable` if its mail would not be aligned. */
  checkDomain(
    domain: string,
    { isOperator, path }: Pick<SendContext, "isOperator" | "path">,
  ): void {
    const { allowedDomains, checkAlignment } = this.#options;
    checkAlignment(domain);
    if (isOperator || allowedDomains === undefined || allowedDomains().has(domain)) return;
    throw new PlatformError("forbidden", `${path}from: the domain ${domain} is not allowed.`);
  }

  async #sendWithKey(request: SendRequest, context: SendContext): Promise<SendAnswer> {
    const { idempotency } = this.#options;
    const { client, idempotencyKey: key, template } = context;
    if (key === undefined) return this.#sendOnce(request, context, undefined);
    const used = { client, key, hash: template?.hash ?? hashRequest(request) };
    return idempotency.run(used, () => this.#sendOnce(request, context, used));
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
    const template = { name, warnings, variables, messageId, hash: hashRequest(request) };
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
    idempotency: UsedKey | undefined,
  ): Promise<SendAnswer> {
    const { acceptance, clock, ids } = this.#options;
    const nowMs = clock.now();
    const sendAt = readSendAt(request, nowMs, context.path);
    const expiresAt = readExpiry(request, sendAt ?? nowMs, context.path);
    await acceptance.checkQueue();
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
      ...toTraceColumns(context.span.context),
      resent_from: null,
    };
    return acceptance.accept({
      message,
      body: { content, ...describeVariables(context.template) },
      recipients,
      idempotency,
      answer: { suppressed, template: context.template },
    });
  }

  // Everything that can refuse the message, before anything is stored.
  async #prepare(request: SendRequest, context: SendContext, id: string, nowMs: number) {
    if (request.channel === "sms") return this.#prepareSms(request, context, id);
    if (request.channel === "push") return this.#preparePush(request, context, id);
    const { fromDomain, attachmentBytesMax } = this.#options;
    const defaultFrom = fromDomain === undefined ? undefined : `no-reply@${fromDomain}`;
    const draft = createDraft(request, { defaultFrom, attachmentBytesMax }, context.path);
    this.checkDomain(draft.from.domain, context);
    this.#checkBulk(request, context);
    const { recipients, suppressed } = await this.#options.suppressions.apply(
      listRecipients(draft),
      request.stream,
      context.span,
    );
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
}

// Kept and erased with the content.
function describeVariables(template: SendContext["template"]) {
  if (template === undefined) return { variables: null, warnings: null };
  const { warnings } = template;
  const variables = JSON.stringify(template.variables).replaceAll("\\u0000", "");
  return {
    variables: variables.length > VARIABLES_CHARACTERS_MAX ? null : variables,
    warnings: warnings.length === 0 ? null : JSON.stringify(warnings),
  };
}
