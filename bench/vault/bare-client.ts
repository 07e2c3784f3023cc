// Requests to a store without a client of ours: Node's HTTP client with presigned URLs and unsigned bodies.
import { once } from "node:events";
import { Agent, request, type IncomingMessage } from "node:http";
import { CREDENTIALS, createPresigner } from "./presign.ts";

/** A request besides its method and path. */
export interface BareRequest {
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: Buffer;
}

/** A multipart upload that has begun. */
export interface BareUpload {
  put: (part: number, bytes: Buffer) => Promise<void>;
  complete: () => Promise<void>;
}

/** Sends requests over kept connections. */
export class BareClient {
  readonly #origin: URL;
  readonly #agent: Agent;
  readonly #sign: ReturnType<typeof createPresigner>;

  constructor(origin: URL, connectionsMax: number) {
    this.#origin = origin;
    this.#agent = new Agent({ keepAlive: true, maxSockets: connectionsMax });
    this.#sign = createPresigner(origin.host, CREDENTIALS);
  }

  /** Resolves with the head and the whole content; rejects unless the status is 2xx. */
  async send(
    method: string,
    path: string,
    { query, headers, body }: BareRequest = {},
  ): Promise<{ answer: IncomingMessage; content: Buffer }> {
    const sent = request(new URL(this.#sign(method, path, query), this.#origin), {
      method,
      agent: this.#agent,
      headers: { ...headers, "content-length": String(body?.length ?? 0) },
    });
    sent.end(body);
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    const pieces: Buffer[] = [];
    for await (const piece of answer) pieces.push(piece as Buffer);
    const content = Buffer.concat(pieces);
    if (answer.statusCode === undefined || answer.statusCode >= 300) {
      throw new Error(`${method} ${path}: ${answer.statusCode} ${content.toString()}`);
    }
    return { answer, content };
  }

  async beginUpload(path: string): Promise<BareUpload> {
    const { content } = await this.send("POST", path, { query: { uploads: "" } });
    const uploadId = /<UploadId>([^<]+)</.exec(content.toString())![1]!;
    const tags = new Map<number, string>();
    return {
      put: async (part, body) => {
        const query = { partNumber: String(part), uploadId };
        const { answer } = await this.send("PUT", path, { query, body });
        tags.set(part, answer.headers.etag!);
      },
      complete: async () => {
        const parts = [...tags]
          .sort(([one], [other]) => one - other)
          .map(([part, tag]) => `<Part><PartNumber>${part}</PartNumber><ETag>${tag}</ETag></Part>`);
        const body = Buffer.from(
          `<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`,
        );
        await this.send("POST", path, { query: { uploadId }, body });
      },
    };
  }
}
