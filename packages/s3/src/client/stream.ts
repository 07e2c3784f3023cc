// A body that is sent while it is read: chunks of 64 KiB, each signed ("Signature calculations: transferring payload in chunks").
import { createHash } from "node:crypto";
import { hashHex, type SignedHead, signChunk, signTrailer } from "../signature/index.ts";

const CHUNK_BYTES = 64 * 1024;
const SIGNATURE_CHARS = 64;
const NAME = ";chunk-signature=";
const TRAILER_SIGNATURE = "x-amz-trailer-signature:";

/** A checksum that follows the body. */
export interface S3Trailer {
  /** Name of its header, in lower case. */
  readonly name: string;
  /** Characters of its value. */
  readonly length: number;
  /** Read after the last byte of the body. */
  readonly value: () => string;
}

/** A body of known length, which is read once. The store verifies each chunk by its signature. */
export class S3Stream {
  /** Length of the body. */
  readonly length: number;
  readonly #chunks: AsyncIterable<Uint8Array>;
  readonly #trailer: S3Trailer | undefined;

  constructor(length: number, chunks: AsyncIterable<Uint8Array>, trailer?: S3Trailer) {
    this.length = length;
    this.#chunks = chunks;
    this.#trailer = trailer;
  }

  /** Value of `x-amz-content-sha256`. */
  get payloadHash(): string {
    const signed = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
    return this.#trailer === undefined ? signed : `${signed}-TRAILER`;
  }

  /** Bytes on the wire. */
  get encodedLength(): number {
    const full = Math.floor(this.length / CHUNK_BYTES);
    const rest = this.length % CHUNK_BYTES;
    const last = rest === 0 ? 0 : measureChunk(rest);
    return full * measureChunk(CHUNK_BYTES) + last + measureHead(0) + this.#measureTrailer() + 2;
  }

  #measureTrailer(): number {
    if (this.#trailer === undefined) return 0;
    const { name, length } = this.#trailer;
    return name.length + 1 + length + 2 + TRAILER_SIGNATURE.length + SIGNATURE_CHARS + 2;
  }

  /** Adds the headers of such a body, which are signed. */
  describe(headers: Record<string, string>): void {
    const encoding = headers["content-encoding"];
    headers["content-encoding"] =
      encoding === undefined ? "aws-chunked" : `aws-chunked,${encoding}`;
    headers["x-amz-decoded-content-length"] = String(this.length);
    if (this.#trailer !== undefined) headers["x-amz-trailer"] = this.#trailer.name;
  }

  /** The body as it is sent after a signed head. */
  async *encode(head: Omit<SignedHead, "headers">): AsyncGenerator<Buffer, void, undefined> {
    let previous = head.signature;
    const sign = (chunk: Uint8Array): Buffer => {
      const digest = createHash("sha256").update(chunk).digest("hex");
      previous = signChunk({ ...head, signature: previous }, digest);
      return Buffer.from(`${chunk.length.toString(16)}${NAME}${previous}\r\n`);
    };
    for await (const chunk of gather(this.#chunks)) {
      yield Buffer.concat([sign(chunk), chunk, LINE_END]);
    }
    const lines = [sign(EMPTY)];
    if (this.#trailer !== undefined) {
      const { name, value } = this.#trailer;
      const line = `${name}:${value()}`;
      const signature = signTrailer({ ...head, signature: previous }, hashHex(`${line}\n`));
      lines.push(Buffer.from(`${line}\r\n${TRAILER_SIGNATURE}${signature}\r\n`));
    }
    yield Buffer.concat([...lines, LINE_END]);
  }
}

const EMPTY = new Uint8Array(0);
const LINE_END = Buffer.from("\r\n");

function measureHead(bytes: number): number {
  return bytes.toString(16).length + NAME.length + SIGNATURE_CHARS + 2;
}

function measureChunk(bytes: number): number {
  return measureHead(bytes) + bytes + 2;
}

// Pieces of exactly 64 KiB and a last one; the memory of what is received may be used again.
async function* gather(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, void, undefined> {
  let filled = 0;
  let piece = Buffer.allocUnsafe(CHUNK_BYTES);
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length;) {
      const taken = Math.min(chunk.length - at, CHUNK_BYTES - filled);
      piece.set(chunk.subarray(at, at + taken), filled);
      filled += taken;
      at += taken;
      if (filled < CHUNK_BYTES) continue;
      yield piece;
      piece = Buffer.allocUnsafe(CHUNK_BYTES);
      filled = 0;
    }
  }
  if (filled > 0) yield piece.subarray(0, filled);
}
