// A bucket in memory, by the parts of the S3 protocol that `objects` and presigned links use.
import { createHash, createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { FakeRefusal, type FakeAnswer, type FakeRequest } from "./exchange.ts";

/** Content and fields, as the last PUT has set them. */
interface FakeObject {
  readonly body: Buffer;
  readonly type: string;
  readonly modified: Date;
  readonly etag: string;
}

/** Options of {@link FakeBucket}. */
export interface FakeBucketOptions {
  readonly bucket: string;
  readonly accessKey: string;
  readonly secretKey: string;
  readonly region: string;
  /** Time in epoch milliseconds, which links expire by. */
  readonly now: () => number;
}

const BYTES_MAX = 256 * 1024 * 1024;
const UPLOADS_MAX = 1_000;
const PAGE_MAX = 1_000;

/** The objects of the service under test. */
export class FakeBucket {
  readonly #options: FakeBucketOptions;
  readonly #objects = new Map<string, FakeObject>();
  readonly #uploads = new Map<string, { type: string; parts: Map<number, Buffer> }>();

  constructor(options: FakeBucketOptions) {
    this.#options = options;
  }

  /** Keys in their order. */
  get keys(): string[] {
    return [...this.#objects.keys()].sort();
  }

  /** The content of an object; undefined if it does not exist. */
  read(key: string): Buffer | undefined {
    return this.#objects.get(key)?.body;
  }

  /** Forgets all objects. */
  clear(): void {
    this.#objects.clear();
    this.#uploads.clear();
  }

  handle(request: FakeRequest): FakeAnswer {
    this.#authorize(request);
    const { bucket } = this.#options;
    const { path, url, method } = request;
    if (path === bucket || path === `${bucket}/`) return this.#list(url.searchParams);
    if (!path.startsWith(`${bucket}/`)) throw refuse(403, "AccessDenied");
    const key = path.slice(bucket.length + 1);
    if (url.searchParams.has("uploads") || url.searchParams.has("uploadId")) {
      return this.#upload(request, key);
    }
    switch (method) {
      case "PUT":
        return {
          status: 200,
          headers: { ETag: this.#store(key, request.body, readType(request)) },
        };
      case "GET":
      case "HEAD":
        return this.#read(key, url.searchParams);
      case "DELETE":
        this.#objects.delete(key);
        return { status: 204 };
      default:
        throw refuse(405, "MethodNotAllowed");
    }
  }

  #store(key: string, body: Buffer, type: string): string {
    const size = [...this.#objects.values()].reduce((sum, one) => sum + one.body.length, 0);
    if (size + body.length > BYTES_MAX) throw refuse(507, "InsufficientStorage");
    const etag = `"${createHash("md5").update(body).digest("hex")}"`;
    this.#objects.set(key, { body, type, modified: new Date(this.#options.now()), etag });
    return etag;
  }

  #read(key: string, query: URLSearchParams): FakeAnswer {
    const found = this.#objects.get(key);
    if (found === undefined) throw refuse(404, "NoSuchKey");
    const { body, type, modified, etag } = found;
    const disposition = query.get("response-content-disposition");
    const headers = {
      "Content-Type": type,
      "Content-Length": String(body.length),
      "Last-Modified": modified.toUTCString(),
      ETag: etag,
      ...(disposition === null ? {} : { "Content-Disposition": disposition }),
    };
    return { status: 200, headers, body };
  }

  #upload({ method, url, body, headers }: FakeRequest, key: string): FakeAnswer {
    const id = url.searchParams.get("uploadId");
    if (id === null) {
      if (this.#uploads.size >= UPLOADS_MAX) throw refuse(503, "SlowDown");
      const created = randomUUID();
      this.#uploads.set(created, { type: readType({ headers }), parts: new Map() });
      const { bucket } = this.#options;
      return answerXml(
        `<InitiateMultipartUploadResult><Bucket>${bucket}</Bucket><Key>${escape(key)}</Key><UploadId>${created}</UploadId></InitiateMultipartUploadResult>`,
      );
    }
    const upload = this.#uploads.get(id);
    if (upload === undefined) throw refuse(404, "NoSuchUpload");
    if (method === "PUT") {
      upload.parts.set(Number(url.searchParams.get("partNumber")), body);
      const etag = `"${createHash("md5").update(body).digest("hex")}"`;
      return { status: 200, headers: { ETag: etag } };
    }
    this.#uploads.delete(id);
    if (method === "DELETE") return { status: 204 };
    const parts = [...upload.parts].toSorted(([one], [other]) => one - other);
    const etag = this.#store(key, Buffer.concat(parts.map(([, part]) => part)), upload.type);
    const { bucket } = this.#options;
    return answerXml(
      `<CompleteMultipartUploadResult><Location>/${bucket}/${escape(key)}</Location><Bucket>${bucket}</Bucket><Key>${escape(key)}</Key><ETag>${escape(etag)}</ETag></CompleteMultipartUploadResult>`,
    );
  }

  #list(query: URLSearchParams): FakeAnswer {
    const prefix = query.get("prefix") ?? "";
    const max = Math.min(PAGE_MAX, Number(query.get("max-keys") ?? PAGE_MAX));
    const after = Buffer.from(query.get("continuation-token") ?? "", "base64url").toString("utf8");
    const keys = this.keys.filter((key) => key.startsWith(prefix) && key > after);
    const page = keys.slice(0, max);
    const isTruncated = keys.length > page.length;
    const entries = page.map((key) => {
      const { body, modified, etag } = this.#objects.get(key)!;
      return `<Contents><Key>${escape(key)}</Key><LastModified>${modified.toISOString()}</LastModified><ETag>${escape(etag)}</ETag><Size>${body.length}</Size><StorageClass>STANDARD</StorageClass></Contents>`;
    });
    const token = Buffer.from(page.at(-1) ?? "").toString("base64url");
    const next = isTruncated ? `<NextContinuationToken>${token}</NextContinuationToken>` : "";
    return answerXml(
      `<ListBucketResult><Name>${this.#options.bucket}</Name><Prefix>${escape(prefix)}</Prefix><KeyCount>${page.length}</KeyCount><MaxKeys>${max}</MaxKeys><IsTruncated>${isTruncated}</IsTruncated>${next}${entries.join("")}</ListBucketResult>`,
    );
  }

  // The service's own requests are recognized by their key; links by their whole signature, as others hold them.
  #authorize(request: FakeRequest): void {
    const { accessKey, now } = this.#options;
    const { searchParams } = request.url;
    if (!searchParams.has("X-Amz-Signature")) {
      const own = request.headers.authorization?.includes(`Credential=${accessKey}/`) === true;
      if (!own) throw refuse(403, "AccessDenied");
      return;
    }
    const date = searchParams.get("X-Amz-Date") ?? "";
    const [, year, month, day, hour, minute, second] =
      /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date) ?? [];
    const signedMs = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
    const livesMs = Number(searchParams.get("X-Amz-Expires")) * 1_000;
    if (!(now() <= signedMs + livesMs)) throw refuse(403, "AccessDenied");
    const expected = Buffer.from(this.#sign(request, date));
    const given = Buffer.from(searchParams.get("X-Amz-Signature")!);
    if (expected.length !== given.length || !timingSafeEqual(expected, given)) {
      throw refuse(403, "SignatureDoesNotMatch");
    }
  }

  #sign({ method, url, headers }: FakeRequest, date: string): string {
    const { region, secretKey } = this.#options;
    const names = (url.searchParams.get("X-Amz-SignedHeaders") ?? "").split(";");
    const query = [...url.searchParams]
      .filter(([name]) => name !== "X-Amz-Signature")
      .map(([name, value]) => `${encode(name)}=${encode(value)}`)
      .sort();
    const fields = names.map((name) => `${name}:${String(headers[name] ?? "").trim()}\n`);
    const path = url.pathname.split("/").map((part) => encode(decodeURIComponent(part)));
    const canonical = [
      method,
      path.join("/"),
      query.join("&"),
      fields.join(""),
      names.join(";"),
      "UNSIGNED-PAYLOAD",
    ].join("\n");
    const day = date.slice(0, 8);
    const scope = `${day}/${region}/s3/aws4_request`;
    const digest = createHash("sha256").update(canonical).digest("hex");
    const text = `AWS4-HMAC-SHA256\n${date}\n${scope}\n${digest}`;
    const key = [day, region, "s3", "aws4_request"].reduce<string | Buffer>(
      (last, part) => createHmac("sha256", last).update(part).digest(),
      `AWS4${secretKey}`,
    );
    return createHmac("sha256", key).update(text).digest("hex");
  }
}

function readType({ headers }: Pick<FakeRequest, "headers">): string {
  return headers["content-type"] ?? "application/octet-stream";
}

function answerXml(text: string, status = 200): FakeAnswer {
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n${text}`;
  return { status, headers: { "Content-Type": "application/xml" }, body };
}

/** An error of S3. */
class FakeStorageRefusal extends FakeRefusal {
  get answer(): FakeAnswer {
    return answerXml(
      `<Error><Code>${this.code}</Code><Message>${this.code}</Message></Error>`,
      this.status,
    );
  }
}

function refuse(status: number, code: string): FakeStorageRefusal {
  return new FakeStorageRefusal(status, code, code);
}

/** The answer to a refusal of storage; undefined for other errors. */
export function answerRefusal(error: unknown): FakeAnswer | undefined {
  return error instanceof FakeStorageRefusal ? error.answer : undefined;
}

function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (sign) => `%${sign.codePointAt(0)!.toString(16).toUpperCase()}`,
  );
}

function escape(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
