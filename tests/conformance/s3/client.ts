// S3 requests as bytes on the wire: cases control all fields and signatures, and see the whole response.
import { Agent, request as sendHttp, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { parseDocument, type Element } from "./document.ts";
import {
  EMPTY_SHA256,
  formatAuthorization,
  encode,
  sha256,
  sign,
  signChunk,
  signTrailer,
  toTimestamp,
  type Credentials,
  type Signature,
} from "./signature.ts";

const TIMEOUT_MS = 60_000;

/** A body in aws-chunked encoding. */
export interface ChunkedBody {
  pieces: readonly string[];
  /** True if each chunk is signed. */
  isSigned: boolean;
  trailers?: Readonly<Record<string, string>>;
  /** Modifies the encoded text before it is sent. */
  spoil?: (coded: string) => string;
}

/** Differences from the default request, which is signed by the root user, including the hash of the payload. */
export interface Ask {
  headers?: Readonly<Record<string, string>>;
  body?: string | Buffer;
  /** The signing user; `nobody` sends the request without a signature. */
  as?: Credentials | "nobody";
  /** Value of `x-amz-content-sha256`; default: the hash of the body. */
  payload?: string;
  chunks?: ChunkedBody;
  time?: Date;
  region?: string;
  host?: string;
  /** Sent instead of the signed content. */
  sendInstead?: { method: string; target: string };
  /** Modifies the fields after signing. */
  spoil?: (headers: Record<string, string>) => void;
}

/** The response. */
export interface Answer {
  status: number;
  /** By lower-case name. */
  headers: Readonly<Record<string, string | undefined>>;
  /** Names with their original case. */
  rawNames: readonly string[];
  body: Buffer;
  text: string;
  /** Parses the body as XML; throws if it is invalid. */
  readonly document: Element;
  /** Path of the request without its query. */
  path: string;
}

/** Differences from the default presigned URL. */
export interface Presigning {
  expires?: number | string;
  time?: Date;
  headers?: Readonly<Record<string, string>>;
  as?: Credentials;
  region?: string;
  /** Default: `X-Amz-`. */
  prefix?: string;
}

/** A client of a server. */
export class Client {
  readonly root: Credentials;
  readonly port: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });

  constructor(port: number, root: Credentials) {
    this.port = port;
    this.root = root;
  }

  /** Default host. */
  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  close(): void {
    this.#agent.destroy();
  }

  /** Sends a request; `target` is sent unchanged as path and query. */
  async send(method: string, target: string, ask: Ask = {}): Promise<Answer> {
    const { headers, body } = this.#build(method, target, ask);
    const sent = ask.sendInstead ?? { method, target };
    return this.#exchange(sent.method, sent.target, headers, body);
  }

  /** Returns the target of a presigned URL. */
  presign(method: string, target: string, presigning: Presigning = {}): string {
    const { as = this.root, region = "us-east-1", prefix = "X-Amz-" } = presigning;
    const time = presigning.time ?? new Date();
    const headers = { host: this.host, ...presigning.headers };
    const timestamp = toTimestamp(time);
    const scope = `${timestamp.slice(0, 8)}/${region}/s3/aws4_request`;
    const given: [string, string][] = [
      ["Algorithm", "AWS4-HMAC-SHA256"],
      ["Credential", `${as.accessKey}/${scope}`],
      ["Date", timestamp],
      ["Expires", String(presigning.expires ?? 300)],
      ["SignedHeaders", Object.keys(headers).sort().join(";")],
    ];
    const [path, before] = splitTarget(target);
    const query = [
      ...(before === "" ? [] : [before]),
      ...given.map(([name, value]) => `${prefix}${name}=${encode(value)}`),
    ].join("&");
    const payloadHash = "UNSIGNED-PAYLOAD";
    const { signature } = sign({
      method,
      path,
      query,
      headers,
      payloadHash,
      credentials: as,
      time,
      region,
    });
    return `${path}?${query}&${prefix}Signature=${signature}`;
  }

  /** Sends text on a new connection and reads until the server closes it. */
  async sendRaw(text: string): Promise<string> {
    const socket = connect(this.port, "127.0.0.1");
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error("no answer")));
    socket.write(text);
    let answer = "";
    for await (const chunk of socket.setEncoding("latin1")) answer += String(chunk);
    return answer;
  }

  #build(method: string, target: string, ask: Ask) {
    const body = Buffer.from(ask.body ?? "");
    const headers: Record<string, string> = {
      host: ask.host ?? this.host,
      ...lowerCase(ask.headers ?? {}),
    };
    const { chunks } = ask;
    let coded: string | undefined;
    if (chunks !== undefined) {
      headers["x-amz-decoded-content-length"] ??= String(Buffer.byteLength(chunks.pieces.join("")));
      if (chunks.trailers !== undefined) {
        headers["x-amz-trailer"] ??= Object.keys(chunks.trailers).join(",");
      }
    }
    if (ask.as === "nobody") {
      if (chunks !== undefined) {
        headers["x-amz-content-sha256"] = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
        coded = encodeChunks(chunks);
      }
    } else {
      const signature = this.#signHeaders(method, target, ask, headers, body);
      if (chunks !== undefined) coded = encodeChunks(chunks, signature);
    }
    ask.spoil?.(headers);
    const sent = coded === undefined ? body : Buffer.from(coded);
    const hasBody = sent.length > 0 || method === "PUT" || method === "POST";
    if (hasBody && headers["transfer-encoding"] === undefined) {
      headers["content-length"] ??= String(sent.length);
    }
    return { headers, body: sent };
  }

  #signHeaders(
    method: string,
    target: string,
    ask: Ask,
    headers: Record<string, string>,
    body: Buffer,
  ): Signature {
    const credentials = (ask.as as Credentials | undefined) ?? this.root;
    const time = ask.time ?? new Date();
    if (headers["date"] === undefined) headers["x-amz-date"] ??= toTimestamp(time);
    const declared =
      ask.payload ?? toPayload(ask.chunks) ?? (body.length === 0 ? EMPTY_SHA256 : sha256(body));
    const name =
      headers["x-store-content-sha256"] === undefined
        ? "x-amz-content-sha256"
        : "x-store-content-sha256";
    headers[name] = declared;
    const [path, query] = splitTarget(target);
    const signature = sign({
      method,
      path,
      query,
      headers,
      payloadHash: declared,
      credentials,
      time,
      region: ask.region ?? "us-east-1",
    });
    headers["authorization"] = formatAuthorization(credentials, signature);
    return signature;
  }

  #exchange(
    method: string,
    target: string,
    headers: Record<string, string>,
    body: Buffer,
  ): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const request = sendHttp({
      host: "127.0.0.1",
      port: this.port,
      method,
      path: target,
      headers,
      agent: this.#agent,
    });
    request.setTimeout(TIMEOUT_MS, () => request.destroy(new Error("no answer")));
    request.on("error", reject);
    request.on("response", (response) => {
      readAnswer(response, splitTarget(target)[0]).then(resolve, reject);
    });
    request.end(body);
    return promise;
  }
}

async function readAnswer(response: IncomingMessage, path: string): Promise<Answer> {
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  const body = Buffer.concat(pieces);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(response.headers)) headers[name] = String(value);
  const text = body.toString("utf8");
  return {
    status: response.statusCode!,
    headers,
    rawNames: response.rawHeaders.filter((_, index) => index % 2 === 0),
    body,
    text,
    get document() {
      return parseDocument(text);
    },
    path,
  };
}

function encodeChunks(chunks: ChunkedBody, seed?: Signature): string {
  let before = seed?.signature ?? "";
  const encodeOne = (text: string): string => {
    const data = Buffer.from(text);
    const size = data.length.toString(16);
    if (!chunks.isSigned) return `${size}\r\n`;
    before = signChunk(seed!, before, data);
    return `${size};chunk-signature=${before}\r\n`;
  };
  let coded = "";
  for (const piece of chunks.pieces) coded += `${encodeOne(piece)}${piece}\r\n`;
  coded += encodeOne("");
  const trailers = Object.entries(chunks.trailers ?? {});
  for (const [name, value] of trailers) coded += `${name}:${value}\r\n`;
  if (chunks.isSigned && chunks.trailers !== undefined) {
    const text = trailers.map(([name, value]) => `${name}:${value}\n`).join("");
    coded += `x-amz-trailer-signature:${signTrailer(seed!, before, text)}\r\n`;
  }
  coded += "\r\n";
  return chunks.spoil?.(coded) ?? coded;
}

function toPayload(chunks: ChunkedBody | undefined): string | undefined {
  if (chunks === undefined) return undefined;
  if (!chunks.isSigned) return "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
  const base = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
  return chunks.trailers === undefined ? base : `${base}-TRAILER`;
}

function splitTarget(target: string): [path: string, query: string] {
  const at = target.indexOf("?");
  return at < 0 ? [target, ""] : [target.slice(0, at), target.slice(at + 1)];
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}
