// Delivers SMS through the HTTP API of a gateway.
import { EgressError, type EgressFetch } from "@platform/kernel/egress";
import { formatTraceHeaders, type Tracer } from "@platform/kernel/trace";
import { readTrace } from "../../database/trace.ts";
import type { Delivery, Outcome, RelayReply, Transport } from "../../delivery.ts";
import type { SmsPreset } from "../../settings/sms.ts";
import { GATEWAY_SHAPES, type GatewayShape } from "./presets.ts";
import { compileTemplate, type RequestTemplate, type TemplatePlace } from "./template.ts";

/** Options of {@link SmsGateway}. */
export interface SmsGatewayOptions {
  preset: SmsPreset;
  /** Parts that replace those of the preset; headers are added to its headers. */
  shape: { [Part in keyof GatewayShape]?: GatewayShape[Part] | undefined };
  account: string;
  secret: string;
  /** Sender of messages that have none. */
  from: string;
  /** Checks and pins addresses. */
  fetch: EgressFetch;
  tracer: Tracer;
}

const NAMES = ["to", "to_digits", "from", "text", "id", "account", "secret", "basic"];
/** Answers that say that this message cannot be sent. Others may change: credentials, credit, rate, faults. */
const REJECTED = new Set([400, 413, 422]);
/** Faults before the request was sent. */
const NOT_SENT = /^(?:ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN)$/;
const RETRY_AFTER_SECONDS_MAX = 86_400;
const DETAIL_CHARACTERS_MAX = 200;

/** The gateway: one destination. */
export class SmsGateway implements Transport {
  readonly #options: SmsGatewayOptions;
  readonly #shape: GatewayShape;
  readonly #url: RequestTemplate;
  readonly #headers: readonly (readonly [name: string, value: RequestTemplate])[];
  readonly #body: RequestTemplate;

  /** Throws an Error that names the setting if a template is invalid. */
  constructor(options: SmsGatewayOptions) {
    const preset = GATEWAY_SHAPES[options.preset];
    const { url, body, idField, statusField, statusAccepted } = options.shape;
    const headers = mergeHeaders(preset.headers, options.shape.headers ?? {});
    const place = findPlace(headers["content-type"] ?? "");
    this.#options = options;
    this.#shape = {
      url: url ?? preset.url,
      headers,
      body: body ?? preset.body,
      idField: idField ?? preset.idField,
      statusField: statusField ?? preset.statusField,
      statusAccepted: statusAccepted ?? preset.statusAccepted,
    };
    if (this.#shape.url === "") throw new Error("sms.url is required for the preset json");
    this.#url = compileTemplate("sms.url", this.#shape.url, "url", NAMES);
    this.#body = compileTemplate("sms.body", this.#shape.body, place, NAMES);
    this.#headers = Object.entries(headers).map(([name, value]) => [
      name,
      compileTemplate(`sms.headers.${name}`, value, "header", NAMES),
    ]);
    this.#checkTemplates(place);
  }

  destinationOf(): string {
    return "sms";
  }

  async deliver(delivery: Delivery, signal: AbortSignal): Promise<Outcome> {
    const span = this.#options.tracer.startSpan({
      name: "notify.sms.request",
      kind: "client",
      parent: readTrace(delivery.message.trace),
      attributes: { "notify.message": delivery.message.id },
    });
    const outcome = await this.#request(delivery, formatTraceHeaders(span.context), signal);
    if (outcome.kind !== "sent") span.setStatus("error", outcome.reply.text);
    span.end();
    return outcome;
  }

  async #request(
    delivery: Delivery,
    traceHeaders: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const values = this.#createValues(delivery);
    const url = this.#url(values);
    const relay = new URL(url).host;
    try {
      const response = await this.#options.fetch(url, {
        method: "POST",
        headers: {
          ...traceHeaders,
          ...Object.fromEntries(this.#headers.map(([name, value]) => [name, value(values)])),
        },
        body: this.#body(values),
        signal,
      });
      return this.#readAnswer(response, await readJson(response), values, relay);
    } catch (error) {
      return toFailure(error, relay);
    }
  }

  #createValues({ message, address }: Delivery): Readonly<Record<string, string>> {
    const { account, secret, from } = this.#options;
    return {
      to: address,
      to_digits: address.replace("+", ""),
      from: message.sender === "" ? from : message.sender,
      text: message.content.toString(),
      id: message.id,
      account,
      secret,
      basic: Buffer.from(`${account}:${secret}`).toString("base64"),
    };
  }

  #readAnswer(
    { status, ok, headers }: Response,
    answer: unknown,
    values: Readonly<Record<string, string>>,
    relay: string,
  ): Outcome {
    const { idField, statusField, statusAccepted } = this.#shape;
    const state = statusField === "" ? undefined : readPath(answer, statusField);
    if (ok && (statusField === "" || statusAccepted.includes(state ?? ""))) {
      const id = readPath(answer, idField);
      const text = id === undefined ? "accepted" : `accepted as ${clean(id, values)}`;
      return { kind: "sent", reply: { relay, code: status, text, gatewayId: id } };
    }
    const reason = ok ? `${statusField}: ${state ?? "missing"}` : findReason(answer);
    const reply: RelayReply = { relay, code: status, text: clean(reason, values) };
    if (ok || REJECTED.has(status)) return { kind: "rejected", cause: "message", reply };
    const seconds = Number(headers.get("retry-after") ?? Number.NaN);
    const retryAfterMs =
      seconds >= 0 && seconds <= RETRY_AFTER_SECONDS_MAX ? seconds * 1_000 : undefined;
    return { kind: "deferred", cause: "relay", reply, retryAfterMs, mayHaveArrived: false };
  }

  // A mistake is found at the start, not by the first message.
  #checkTemplates(place: TemplatePlace): void {
    const values = Object.fromEntries(NAMES.map((name) => [name, 'a"\n']));
    if (!URL.canParse(this.#url(values))) throw new Error("sms.url: not a URL");
    if (place !== "json") return;
    try {
      JSON.parse(this.#body(values));
    } catch (cause) {
      throw new Error("sms.body: not JSON", { cause });
    }
  }
}

function mergeHeaders(...all: Readonly<Record<string, string>>[]): Record<string, string> {
  const entries = all.flatMap((headers) => Object.entries(headers));
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value]));
}

function findPlace(contentType: string): TemplatePlace {
  if (/\bjson\b/i.test(contentType)) return "json";
  return /x-www-form-urlencoded/i.test(contentType) ? "form" : "text";
}

async function readJson(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    // Gateways also answer with text, or with nothing.
    return undefined;
  }
}

function readPath(value: unknown, path: string): string | undefined {
  let found = value;
  for (const name of path.split(".")) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, name))
      return undefined;
    found = (found as Record<string, unknown>)[name];
  }
  return typeof found === "string" || typeof found === "number" ? String(found) : undefined;
}

function findReason(answer: unknown): string {
  const paths = [
    "message",
    "detail",
    "title",
    "error",
    "text",
    "error.message",
    "errors.0.description",
  ];
  for (const path of paths) {
    const found = readPath(answer, path);
    if (found !== undefined) return found;
  }
  return "";
}

// Details are shown by the API and logged: they contain neither the message nor credentials.
function clean(text: string, values: Readonly<Record<string, string>>): string {
  let cleaned = text;
  for (const name of ["text", "secret", "basic"]) {
    const value = values[name]!;
    if (value !== "") cleaned = cleaned.replaceAll(value, "…");
  }
  return cleaned.replaceAll(/\p{Cc}+/gu, " ").slice(0, DETAIL_CHARACTERS_MAX);
}

function toFailure(error: unknown, relay: string): Outcome {
  const text = error instanceof EgressError ? error.message : "the request failed";
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const hasSent =
    !(error instanceof EgressError) ||
    error.code === "timeout" ||
    error.code === "aborted" ||
    (error.code === "unreachable" && !NOT_SENT.test(code)) ||
    error.code.startsWith("answer_");
  const reply = { relay, text };
  return { kind: "deferred", cause: "relay", reply, mayHaveArrived: hasSent };
}
