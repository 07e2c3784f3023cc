// Signed requests to a running service, as far as these tests need them.
import { Agent, request as sendHttp } from "node:http";
import { hashHex, signRequest } from "@platform/s3/signature";

const REGION = "us-east-1";

/** The credentials of a client. */
export interface Key {
  accessKey: string;
  secretKey: string;
}

/** An answer. */
export interface Answer {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: Buffer;
  text: string;
  /** The element Code of an error, or the member of one in JSON. */
  code: string | undefined;
}

/** Options of a request that differ from a signed, empty one. */
export interface Ask {
  body?: string | Buffer;
  headers?: Readonly<Record<string, string>>;
  /** Null for an unsigned request. */
  key?: Key | null;
  /** Value of `x-amz-content-sha256`; the hash of the body by default. */
  payloadHash?: string;
}

/** A client of one address. */
export class S3TestClient {
  readonly #port: number;
  readonly #key: Key;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });

  constructor(port: number, key: Key) {
    this.#port = port;
    this.#key = key;
  }

  /** Sends a request; `target` is path and query. */
  send(method: string, target: string, ask: Ask = {}): Promise<Answer> {
    const { body = "", key = this.#key } = ask;
    const bytes = Buffer.from(body);
    const headers = { host: `127.0.0.1:${this.#port}`, ...ask.headers };
    const payloadHash = ask.payloadHash ?? hashHex(bytes);
    const signed =
      key === null
        ? headers
        : signRequest(
            { accessKey: key.accessKey, secret: key.secretKey, region: REGION },
            { method, target, headers, payloadHash, timeMs: Date.now() },
          ).headers;
    const length = method === "GET" || method === "HEAD" ? {} : { "content-length": bytes.length };
    return new Promise((resolve, reject) => {
      const sent = sendHttp(
        {
          host: "127.0.0.1",
          port: this.#port,
          method,
          path: target,
          headers: { ...length, ...signed },
          agent: this.#agent,
        },
        (answer) => {
          const pieces: Buffer[] = [];
          answer.on("data", (piece: Buffer) => pieces.push(piece));
          answer.on("error", reject);
          answer.on("end", () => {
            const whole = Buffer.concat(pieces);
            const text = whole.toString();
            resolve({
              status: answer.statusCode ?? 0,
              headers: answer.headers,
              body: whole,
              text,
              code: (/<Code>([^<]*)</.exec(text) ?? /^\{"code":"(\w+)"/.exec(text))?.[1],
            });
          });
        },
      );
      sent.on("error", reject);
      sent.end(bytes);
    });
  }

  /** As `send`, but throws unless it succeeds. */
  async must(method: string, target: string, ask: Ask = {}): Promise<Answer> {
    const answer = await this.send(method, target, ask);
    if (answer.status >= 300) {
      throw new Error(`${method} ${target}: ${answer.status} ${answer.text}`);
    }
    return answer;
  }

  close(): void {
    this.#agent.destroy();
  }
}
