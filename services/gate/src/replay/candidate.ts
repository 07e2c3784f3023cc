// Sends recorded requests to the candidate and reads its responses.
import { createHash } from "node:crypto";
import { Agent, request as requestHttp, type IncomingMessage } from "node:http";
import { Agent as TlsAgent, request as requestHttps } from "node:https";
import { REDACTED } from "@platform/kernel/log";
import type { RecordedExchange, RecordedFields } from "../recording/recorded-exchange.ts";

/** Longer responses are compared by their hash. */
const CONTENT_BYTES_MAX = 16_777_216;
/** Fields that belong to the recorded connection or trace: an edited recording must not change the framing either. */
const UNSENT: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "traceparent",
  "tracestate",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** Requests that may be sent twice (RFC 9110 section 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set([
  "DELETE",
  "GET",
  "HEAD",
  "OPTIONS",
  "PUT",
  "TRACE",
]);
/** Methods whose requests announce that they have no body (RFC 9110 section 8.6). */
const WITH_BODY: ReadonlySet<string> = new Set(["PATCH", "POST", "PUT"]);

/** Options of {@link Candidate}. */
export interface CandidateOptions {
  origin: URL;
  /** The Host of the request: as recorded, or that of the candidate. */
  host: "client" | "target";
  /** Fields in place of those of the recording. */
  headers: RecordedFields;
  timeoutMs: number;
  connectionsMax: number;
}

/** A response of the candidate. */
export interface CandidateResponse {
  status: number;
  fields: RecordedFields;
  /** As sent, with its Content-Encoding; undefined if it is too long. */
  content: Buffer | undefined;
  /** Of the content as sent, in hex. */
  sha256: string;
  durationMs: number;
}

/** The service that the requests are sent to. */
export class Candidate {
  readonly #options: CandidateOptions;
  readonly #agent: Agent;
  /** For requests that must not be sent twice: a connection that was idle may be closed just then. */
  readonly #freshAgent: Agent;

  constructor(options: CandidateOptions) {
    const { connectionsMax: maxSockets } = options;
    this.#options = options;
    const create = (keepAlive: boolean): Agent =>
      this.#isSecure()
        ? new TlsAgent({ keepAlive, maxSockets })
        : new Agent({ keepAlive, maxSockets });
    this.#agent = create(true);
    this.#freshAgent = create(false);
  }

  /** Sends a request with its body. Rejects if there is no complete response within the timeout. */
  async send(recorded: RecordedExchange, body: Buffer): Promise<CandidateResponse> {
    const { timeoutMs } = this.#options;
    const startedMs = performance.now();
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      let answer = await this.#send(recorded, body, signal, this.#choose(recorded));
      if (answer === "stale") answer = await this.#send(recorded, body, signal, this.#freshAgent);
      if (answer === "stale") throw new Error("the candidate reset the connection");
      return { ...answer, durationMs: performance.now() - startedMs };
    } catch (cause) {
      if (signal.aborted) throw new Error(`no response within ${timeoutMs} ms`, { cause });
      throw cause;
    }
  }

  close(): void {
    this.#agent.destroy();
    this.#freshAgent.destroy();
  }

  #choose({ request }: RecordedExchange): Agent {
    return IDEMPOTENT.has(request.method) ? this.#agent : this.#freshAgent;
  }

  // "stale": the connection was used before, and the candidate has closed it without a response.
  #send(
    recorded: RecordedExchange,
    body: Buffer,
    signal: AbortSignal,
    agent: Agent,
  ): Promise<Omit<CandidateResponse, "durationMs"> | "stale"> {
    const { request } = recorded;
    const { origin } = this.#options;
    return new Promise((resolve, reject) => {
      const sent = (this.#isSecure() ? requestHttps : requestHttp)({
        host: origin.hostname.replace(/^\[|\]$/g, ""),
        port: origin.port === "" ? (this.#isSecure() ? 443 : 80) : Number(origin.port),
        method: request.method,
        path: request.target,
        headers: this.#listFields(recorded, body.length).flat(),
        setHost: false,
        agent,
        signal,
      });
      let isAnswered = false;
      sent.on("error", (error: NodeJS.ErrnoException) => {
        const isStale = sent.reusedSocket && !isAnswered && error.code === "ECONNRESET";
        if (isStale && !signal.aborted) resolve("stale");
        else reject(error);
      });
      sent.on("upgrade", (_response, socket) => {
        socket.destroy();
        reject(new Error("the candidate switched protocols"));
      });
      sent.on("response", (response) => {
        isAnswered = true;
        readResponse(response).then(resolve, reject);
      });
      sent.end(body);
    });
  }

  #isSecure(): boolean {
    return this.#options.origin.protocol === "https:";
  }

  // Redacted credentials are not sent.
  #listFields({ request }: RecordedExchange, bodyBytes: number): RecordedFields {
    const { headers, host, origin } = this.#options;
    const hasLength = bodyBytes > 0 || WITH_BODY.has(request.method);
    const own = new Set(headers.map(([name]) => name.toLowerCase()));
    if (host === "target") own.add("host");
    const kept = request.headers.filter(
      ([name, value]) =>
        !own.has(name.toLowerCase()) &&
        !UNSENT.has(name.toLowerCase()) &&
        !value.includes(REDACTED),
    );
    const isNamed = kept.some(([name]) => name.toLowerCase() === "host");
    return [
      ...(isNamed || (own.has("host") && host === "client")
        ? []
        : [["Host", origin.host] as [string, string]]),
      ...kept,
      ...headers,
      ...(hasLength ? [["Content-Length", String(bodyBytes)] as [string, string]] : []),
    ];
  }
}

async function readResponse(
  response: IncomingMessage,
): Promise<Omit<CandidateResponse, "durationMs">> {
  const hash = createHash("sha256");
  let pieces: Buffer[] | undefined = [];
  let bytes = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    hash.update(piece);
    bytes += piece.length;
    if (bytes > CONTENT_BYTES_MAX) pieces = undefined;
    else pieces?.push(piece);
  }
  const { rawHeaders } = response;
  const fields: RecordedFields = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    fields.push([rawHeaders[at]!, rawHeaders[at + 1]!]);
  }
  return {
    status: response.statusCode ?? 0,
    fields,
    content: pieces === undefined ? undefined : Buffer.concat(pieces),
    sha256: hash.digest("hex"),
  };
}
