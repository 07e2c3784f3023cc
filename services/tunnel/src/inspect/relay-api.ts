// Calls to the relay's API on behalf of the inspector, with the client's token.
import { request as requestPlain, type IncomingMessage, type RequestOptions } from "node:http";
import { request as requestSecure } from "node:https";

/** Options of {@link RelayApi}. */
export interface RelayApiOptions {
  /** `ws:` or `wss:` URL at which the client connects. */
  relay: string;
  token: string | undefined;
  /** PEM roots for the relay. */
  ca: string | undefined;
}

/** A call below `/api/v1/tunnels/`. */
export interface RelayCall {
  readonly method: "GET" | "POST" | "DELETE";
  /** Path with query, without leading slash. */
  readonly path: string;
  /** JSON. */
  readonly body?: Buffer;
}

/** The relay's answer. */
export interface RelayAnswer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** Longer than the relay waits for the response to a replay. */
const TIMEOUT_MS = 150_000;
const ANSWER_BYTES_MAX = 16_777_216;

/** The relay's API. */
export class RelayApi {
  readonly #options: RelayApiOptions;

  constructor(options: RelayApiOptions) {
    this.#options = options;
  }

  /** Sends a call; rejects if the relay cannot be reached or its answer is too large. */
  call({ method, path, body }: RelayCall): Promise<RelayAnswer> {
    const { relay, token, ca } = this.#options;
    const url = new URL(`/api/v1/tunnels/${path}`, relay.replace(/^ws/, "http"));
    const options: RequestOptions & { ca?: string } = {
      method,
      headers: {
        accept: "application/json",
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined
          ? {}
          : { "content-type": "application/json", "content-length": body.length }),
      },
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(ca === undefined ? {} : { ca }),
    };
    const request = url.protocol === "https:" ? requestSecure : requestPlain;
    return new Promise((resolve, reject) => {
      const outgoing = request(url, options, (response) => {
        collect(response).then(resolve, reject);
      });
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  }
}

async function collect(response: IncomingMessage): Promise<RelayAnswer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > ANSWER_BYTES_MAX) throw new Error("the relay's answer is too large");
    pieces.push(piece);
  }
  const { statusCode: status = 0, headers } = response;
  return { status, headers, body: Buffer.concat(pieces) };
}
