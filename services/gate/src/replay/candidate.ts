// Sends recorded requests to the candidate and reads its responses.
import { createHash } from "node:crypto";
import { Agent, request as requestHttp, type IncomingMessage } from "node:http";
import { Agent as TlsAgent, request as requestHttps } from "node:https";
import { REDACTED } from "@platform/kernel/log";
import type { RecordedExchange, RecordedFields } from "../recording/recorded-exchange.ts";

/** Longer responses are compared by their hash. */
const CONTENT_BYTES_MAX = 16_777_216;
/** Fields that belong to the recorded connection or trace. */
const UNSENT: ReadonlySet<string> = new Set(["traceparent", "tracestate", "upgrade"]);

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

  constructor(options: CandidateOptions) {
    const { connectionsMax: maxSockets } = options;
    this.#options = options;
    this.#agent = this.#isSecure()
      ? new TlsAgent({ keepAlive: true, maxSockets })
      : new Agent({ keepAlive: true, maxSockets });
  }

  /** Sends a request with its body. Rejects if there is no complete response within the timeout. */
  async send({ request }: RecordedExchange, body: Buffer): Promise<CandidateResponse> {
    const { origin, timeoutMs } = this.#options;
    const startedMs = performance.now();
    const signal = AbortSignal.timeout(timeoutMs);
    const sent = (this.#isSecure() ? requestHttps : requestHttp)({
      host: origin.hostname.replace(/^\[|\]$/g, ""),
      port: origin.port === "" ? (this.#isSecure() ? 443 : 80) : Number(origin.port),
      method: request.method,
      path: request.target,
      headers: this.#listFields(request.headers, body.length).flat(),
      setHost: false,
      agent: this.#agent,
      signal,
    });
    try {
      return await new Promise((resolve, reject) => {
        sent.on("error", reject);
        sent.on("response", (response) => {
          readResponse(response).then(
            (answer) => resolve({ ...answer, durationMs: performance.now() - startedMs }),
            reject,
          );
        });
        sent.end(body);
      });
    } catch (cause) {
      if (signal.aborted) throw new Error(`no response within ${timeoutMs} ms`, { cause });
      throw cause;
    }
  }

  close(): void {
    this.#agent.destroy();
  }

  #isSecure(): boolean {
    return this.#options.origin.protocol === "https:";
  }

  // Redacted credentials are not sent.
  #listFields(recorded: RecordedFields, bodyBytes: number): RecordedFields {
    const { headers, host, origin } = this.#options;
    const own = new Set(headers.map(([name]) => name.toLowerCase()));
    if (host === "target") own.add("host");
    const kept = recorded.filter(
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
      ...(bodyBytes > 0 ? [["Content-Length", String(bodyBytes)] as [string, string]] : []),
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
