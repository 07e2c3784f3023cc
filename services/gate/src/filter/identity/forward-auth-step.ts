// The step of forward auth: another service judges each request, as with Traefik's ForwardAuth and nginx's auth_request.
import type { HeadWriter } from "@platform/http1";
import { createEgress } from "@platform/kernel/egress";
import { createRetryLaterError } from "@platform/kernel/errors";
import { answerWith, readMethod } from "../../exchange/answers.ts";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import { CLIENT_CERT_FIELDS, type ForwardAuth, type RouteSpec } from "../../shared-state/index.ts";
import type { StepParts } from "../step-parts.ts";

const IN_FLIGHT_MAX = 1_024;
const BODY_BYTES_MAX = 1_048_576;
/** Identity that the gateway has verified; clients may not set it. */
const IDENTITY: readonly string[] = [
  "x-user-id",
  "x-user-roles",
  "x-tenant-id",
  ...CLIENT_CERT_FIELDS,
];
/** Credentials for the service, also if it returns others for the upstream. */
const CREDENTIALS: readonly string[] = ["authorization", "cookie"];
/** Fields of one connection, of the body, and those that the gateway writes. */
const NOT_SENT: ReadonlySet<string> = new Set([
  "accept-encoding",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "forwarded",
  "host",
  "keep-alive",
  "max-forwards",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** Fields of a refusal that describe its connection or its encoded form. */
const NOT_PASSED: ReadonlySet<string> = new Set([
  "connection",
  "content-encoding",
  "content-length",
  "date",
  "keep-alive",
  "proxy-connection",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Asks a service about each request. */
export class ForwardAuthStep implements Step {
  readonly #auth: ForwardAuth;
  readonly #parts: StepParts;
  readonly #sent: ReadonlySet<string> | undefined;
  /** Fields that the service, like an upstream, may trust. */
  readonly #cut: Set<string>;
  readonly #fetch: (
    url: string,
    request: { headers: Headers; signal: AbortSignal },
  ) => Promise<Response>;
  #inFlight = 0;

  constructor(auth: ForwardAuth, { cutFields, confined }: RouteSpec, parts: StepParts) {
    this.#auth = auth;
    this.#parts = parts;
    this.#fetch =
      confined === undefined
        ? (url, request) => fetch(url, { ...request, redirect: "manual" })
        : createEgress({
            allowedNetworks: confined.networks,
            timeoutMs: auth.timeoutMs,
            answerBytesMax: BODY_BYTES_MAX,
            callsMax: IN_FLIGHT_MAX,
          });
    this.#cut = new Set([...IDENTITY, ...cutFields].map(spellField));
    for (const name of CREDENTIALS) this.#cut.delete(name);
    this.#sent =
      auth.requestFields === undefined
        ? undefined
        : new Set(auth.requestFields.map((name) => name.toLowerCase()));
  }

  async run(exchange: GateExchange): Promise<boolean> {
    const { sequence, userData: state } = exchange;
    state.holdsOperatorToken = this.#parts.identity.current.holdsOperatorToken(
      exchange.head.fields,
    );
    if (this.#inFlight >= IN_FLIGHT_MAX) throw createUnavailableError();
    this.#inFlight++;
    try {
      const answer = await this.#ask(exchange);
      const body = answer.ok ? undefined : await readBody(answer);
      if (answer.ok) await answer.body?.cancel();
      if (exchange.sequence !== sequence || exchange.aborted) return false;
      if (body === undefined) {
        state.authLines = this.#readLines(answer.headers);
        return true;
      }
      answerWith(exchange, { status: answer.status, headers: listPassed(answer.headers), body });
      return false;
    } finally {
      this.#inFlight--;
    }
  }

  onRequestHead({ userData }: GateExchange, writer: HeadWriter): void {
    if (userData.authLines !== null) writer.raw(userData.authLines);
  }

  async #ask(exchange: GateExchange): Promise<Response> {
    const { url, timeoutMs } = this.#auth;
    try {
      return await this.#fetch(url, {
        headers: new Headers(this.#listFields(exchange)),
        signal: AbortSignal.timeout(timeoutMs),
      });
    } catch (cause) {
      this.#parts.onGuardError("the forward-auth service does not answer", url, cause);
      throw createUnavailableError();
    }
  }

  #listFields(exchange: GateExchange): [string, string][] {
    const { head, userData: state } = exchange;
    const list: [string, string][] = [];
    for (const [name, value] of head.fields.lowerEntries()) {
      const isHeld = name === "authorization" && state.holdsOperatorToken;
      const isWanted = this.#sent?.has(name) ?? true;
      const spelled = spellField(name);
      if (!isWanted || isHeld || NOT_SENT.has(name) || this.#cut.has(spelled)) continue;
      if (isForwarding(spelled)) continue;
      list.push([name, value]);
    }
    const { clientAddress, proto, host } = state.forwarding;
    const uri = head.bytes.toString("latin1", head.pathStart, head.targetEnd) || "/";
    list.push(
      ["accept-encoding", "identity"],
      ["x-forwarded-for", clientAddress],
      ["x-forwarded-proto", proto],
      ["x-forwarded-host", host],
      ["x-forwarded-method", readMethod(exchange)],
      ["x-forwarded-uri", uri],
      ["x-original-method", readMethod(exchange)],
      ["x-original-uri", uri],
    );
    return list;
  }

  #readLines(headers: Headers): Buffer | null {
    let text = "";
    for (const name of this.#auth.upstreamFields) {
      const value = headers.get(name);
      if (value !== null) text += `${name}: ${value}\r\n`;
    }
    return text === "" ? null : Buffer.from(text, "latin1");
  }
}

function listPassed(headers: Headers): [string, string][] {
  const list: [string, string][] = headers.getSetCookie().map((value) => ["Set-Cookie", value]);
  for (const [name, value] of headers) {
    if (name !== "set-cookie" && !NOT_PASSED.has(name)) list.push([name, value]);
  }
  return list;
}

async function readBody(answer: Response): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.byteLength;
    if (size > BODY_BYTES_MAX) throw createUnavailableError();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function createUnavailableError() {
  return createRetryLaterError("unavailable", "The request cannot be authorized now.", 1);
}

// Programs behind CGI or WSGI do not distinguish `X_Forwarded_Uri` from `X-Forwarded-Uri`.
function spellField(name: string): string {
  return name.toLowerCase().replaceAll("_", "-");
}

function isForwarding(name: string): boolean {
  return name.startsWith("x-forwarded-") || name.startsWith("x-original-") || name === "x-real-ip";
}
