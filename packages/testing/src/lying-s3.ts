// An S3 store in memory that fails and lies as tests tell it. Signatures are not checked.
import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** A request as the rules of a test see it. */
export interface SeenRequest {
  readonly method: string;
  readonly bucket: string;
  /** "" for requests about the bucket. */
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/**
 * A fault of one request. `refuse` answers an error and changes nothing; the others change what the store does or answers:
 * `lose` forgets the body that it accepts, `alter` keeps other bytes, `half` ends the body early, `garble` answers other bytes,
 * `shift` answers another range, `hang` sends the head and then nothing, `drop` works and closes the connection without an answer.
 */
export type Fault =
  | { kind: "refuse"; status: number; code: string; headers?: Record<string, string> }
  | { kind: "lose" | "alter" | "half" | "garble" | "shift" | "hang" | "drop" };

/** Options of a {@link LyingS3}. */
export interface LyingS3Options {
  /** Keeps checksums of whole objects and returns them on HEAD; true by default. */
  hasChecksums?: boolean;
  /** Port of loopback. */
  port?: number;
  /** Decides about each request, before it has an effect. */
  judge?: (request: SeenRequest) => Fault | undefined | Promise<Fault | undefined>;
}

interface Kept {
  bytes: Buffer;
  metadata: Record<string, string>;
  checksums: Record<string, string>;
}

/** See the file's title. */
export class LyingS3 implements AsyncDisposable {
  readonly objects = new Map<string, Kept>();
  readonly requests: SeenRequest[] = [];
  /** Documents of subresources, such as `versioning`. */
  readonly settings = new Map<string, string>();
  judge: NonNullable<LyingS3Options["judge"]>;
  readonly #uploads = new Map<string, Map<number, Buffer>>();
  readonly #hasChecksums: boolean;
  readonly #server = createServer((request, answer) => {
    this.#serve(request, answer).catch(() => answer.destroy());
  });

  private constructor({ hasChecksums = true, judge }: LyingS3Options) {
    this.#hasChecksums = hasChecksums;
    this.judge = judge ?? (() => undefined);
  }

  /** Listens on loopback, at a free port unless one is given. */
  static async start(options: LyingS3Options = {}): Promise<LyingS3> {
    const store = new LyingS3(options);
    const { port = 0 } = options;
    await new Promise<void>((resolve) => store.#server.listen(port, "127.0.0.1", resolve));
    return store;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Keys of a bucket in their order. */
  keys(bucket: string): string[] {
    const names = [...this.objects.keys()].filter((name) => name.startsWith(`${bucket}/`));
    return names.map((name) => name.slice(bucket.length + 1)).sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, answer: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece);
    const url = new URL(request.url ?? "/", this.endpoint);
    const [, bucket = "", ...rest] = url.pathname.split("/").map(decodeURIComponent);
    const { method = "", headers } = request;
    const { searchParams: query } = url;
    const seen = {
      method,
      bucket,
      key: rest.join("/"),
      query,
      headers,
      body: Buffer.concat(pieces),
    };
    this.requests.push(seen);
    const fault = await this.judge(seen);
    if (fault?.kind === "refuse") {
      answer
        .writeHead(fault.status, fault.headers)
        .end(`<Error><Code>${fault.code}</Code></Error>`);
      return;
    }
    const { status, fields, body } = this.#answer(seen, fault);
    if (fault?.kind === "drop") {
      answer.destroy();
      return;
    }
    answer.writeHead(status, { "content-length": body.length, ...fields });
    if (method === "HEAD") answer.end();
    else if (fault?.kind === "half" || fault?.kind === "hang") {
      answer.write(body.subarray(0, Math.floor(body.length / 2)));
      await sleep(fault.kind === "half" ? 20 : 60_000, undefined, { ref: false });
      answer.destroy();
    } else answer.end(fault?.kind === "garble" ? flip(body) : body);
  }

  #answer(seen: SeenRequest, fault: Fault | undefined): Answered {
    const { method, bucket, key, query, headers, body } = seen;
    const name = `${bucket}/${key}`;
    if (key === "") return this.#answerBucket(bucket, query);
    if (method === "POST" && query.has("uploads")) {
      const id = randomUUID();
      this.#uploads.set(id, new Map());
      return xml(
        `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
      );
    }
    const uploadId = query.get("uploadId");
    if (uploadId !== null) return this.#answerUpload(seen, uploadId, fault);
    if (method === "PUT") {
      if (headers["if-none-match"] === "*" && this.objects.has(name))
        return error(412, "PreconditionFailed");
      return this.#keep(name, body, headers, fault);
    }
    if (method === "DELETE") {
      this.objects.delete(name);
      return { status: 204, fields: {}, body: Buffer.alloc(0) };
    }
    const found = this.objects.get(name);
    if (found === undefined) return error(404, "NoSuchKey");
    const fields = {
      etag: tag(found.bytes),
      ...found.metadata,
      ...(headers["x-amz-checksum-mode"] ? found.checksums : {}),
    };
    const range = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "");
    if (range === null) return { status: 200, fields, body: found.bytes };
    const from = Number(range[1]);
    const moved = fault?.kind === "shift" ? from + 1 : from;
    const piece = found.bytes.subarray(moved, Math.min(Number(range[2]) + 1, found.bytes.length));
    const total = found.bytes.length;
    const content = `bytes ${from}-${from + piece.length - 1}/${total}`;
    return { status: 206, fields: { ...fields, "content-range": content }, body: piece };
  }

  #answerBucket(bucket: string, query: URLSearchParams): Answered {
    for (const [name, text] of this.settings) if (query.has(name)) return xml(text);
    if (query.get("list-type") !== "2") return error(404, "NoSuchConfiguration");
    const keys = this.keys(bucket).filter((key) => key.startsWith(query.get("prefix") ?? ""));
    const rows = keys.map(
      (key) =>
        `<Contents><Key>${encodeURIComponent(key)}</Key><Size>${this.objects.get(`${bucket}/${key}`)!.bytes.length}</Size><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>`,
    );
    return xml(
      `<ListBucketResult><EncodingType>url</EncodingType>${rows.join("")}</ListBucketResult>`,
    );
  }

  #answerUpload(
    { method, bucket, key, query, headers, body }: SeenRequest,
    id: string,
    fault: Fault | undefined,
  ): Answered {
    const parts = this.#uploads.get(id);
    if (parts === undefined) return error(404, "NoSuchUpload");
    if (method === "PUT") {
      parts.set(Number(query.get("partNumber")), body);
      return { status: 200, fields: { etag: tag(body) }, body: Buffer.alloc(0) };
    }
    this.#uploads.delete(id);
    if (method === "DELETE") return { status: 204, fields: {}, body: Buffer.alloc(0) };
    const whole = Buffer.concat([...parts].sort(([a], [b]) => a - b).map(([, part]) => part));
    this.#keep(`${bucket}/${key}`, whole, headers, fault);
    return xml("<CompleteMultipartUploadResult/>");
  }

  #keep(
    name: string,
    body: Buffer,
    headers: IncomingMessage["headers"],
    fault: Fault | undefined,
  ): Answered {
    const own = Object.entries(headers).filter(([field]) =>
      /^x-amz-checksum-(?:crc|sha)/.test(field),
    );
    const checksums = this.#hasChecksums ? (Object.fromEntries(own) as Record<string, string>) : {};
    const named = Object.entries(headers).filter(([field]) => field.startsWith("x-amz-meta-"));
    const metadata = Object.fromEntries(named) as Record<string, string>;
    // A store that keeps other bytes computes its checksum from them.
    const isAltered = fault?.kind === "alter";
    if (isAltered) for (const field of Object.keys(checksums)) checksums[field] = "AAAAAA==";
    if (fault?.kind !== "lose")
      this.objects.set(name, { bytes: isAltered ? flip(body) : body, metadata, checksums });
    return { status: 200, fields: { etag: tag(body) }, body: Buffer.alloc(0) };
  }
}

interface Answered {
  status: number;
  fields: Record<string, string>;
  body: Buffer;
}

function xml(text: string): Answered {
  return { status: 200, fields: { "content-type": "application/xml" }, body: Buffer.from(text) };
}

function error(status: number, code: string): Answered {
  return { ...xml(`<Error><Code>${code}</Code></Error>`), status };
}

function tag(bytes: Buffer): string {
  return `"${createHash("md5").update(bytes).digest("hex")}"`;
}

// One bit in the middle.
function flip(bytes: Buffer): Buffer {
  const other = Buffer.from(bytes);
  const at = Math.floor(other.length / 2);
  if (other.length > 0) other[at] = other[at]! ^ 1;
  return other;
}
