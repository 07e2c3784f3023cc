// Decodes aws-chunked request bodies: verifies signatures and trailers, and removes the framing.
import { createHash, type Hash } from "node:crypto";
import { S3Error } from "../../model/s3-error.ts";
import {
  type ChunkSeed,
  hashHex,
  isSameSignature,
  signChunk,
  signTrailer,
} from "@platform/s3/signature";

/** Limit of a `size;chunk-signature=…` line. */
const CHUNK_HEAD_BYTES_MAX = 256;
/** Limit of all trailers. */
const TRAILER_BYTES_MAX = 8_192;
const CHUNK_HEAD = /^([0-9a-fA-F]{1,12})(?:;chunk-signature=([0-9a-f]{64}))?$/;
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}):[ \t]*([\x20-\x7e\t]*?)[ \t]*$/;
const SIGNATURE_NAMES: ReadonlySet<string> = new Set([
  "x-amz-trailer-signature",
  "x-store-trailer-signature",
]);

/** Options of a decoder. */
export interface AwsChunkedOptions {
  /** Present if every chunk must be signed. */
  seed?: ChunkSeed | undefined;
  /** Lower-case names from `x-amz-trailer`; empty if trailers are not allowed. */
  trailerNames: readonly string[];
  /** `x-amz-decoded-content-length`: the exact number of data bytes. */
  decodedLength: number;
}

const EMPTY_LINE = "\r\n";

const HEAD = 0;
const DATA = 1;
const DATA_END = 2;
const TRAILER = 3;
const DONE = 4;

/**
 * An incremental decoder, one per body:
 *
 * ```text
 *   HEAD --size>0--> DATA --size bytes--> DATA_END --CRLF--> HEAD
 *     \--size=0--> TRAILER --empty line--> DONE
 * ```
 *
 * Trailers are accepted in the forms that clients send: minio-go ends headers with a bare LF and sends an empty line before
 * the signature, or a second one after the last header.
 *
 * `execute` passes on the data of a chunk as views, before the signature of the chunk can be verified. So nothing of a body
 * may be kept until `finish` has returned.
 */
export class AwsChunkedDecoder {
  readonly #seed: ChunkSeed | undefined;
  readonly #trailerNames: readonly string[];
  readonly #decodedLength: number;
  #state = HEAD;
  #line = "";
  #remaining = 0;
  #decoded = 0;
  #signature: string;
  #claimed: string | undefined;
  #hash: Hash | undefined;
  #trailerBytes = 0;
  #trailerText = "";
  #trailerSignature: string | undefined;
  #emptyLines = 0;
  #behind = "";
  readonly #trailers: [string, string][] = [];

  constructor(options: AwsChunkedOptions) {
    this.#seed = options.seed;
    this.#trailerNames = options.trailerNames;
    this.#decodedLength = options.decodedLength;
    this.#signature = options.seed?.signature ?? "";
  }

  /** Decodes the next bytes and calls `onData` with each run of data. Throws S3Error. */
  execute(bytes: Buffer, onData: (data: Buffer) => void): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#state === DATA) {
        const end = Math.min(bytes.length, at + this.#remaining);
        const data = bytes.subarray(at, end);
        this.#remaining -= data.length;
        this.#hash?.update(data);
        at = end;
        if (this.#remaining === 0) this.#endData();
        onData(data);
      } else if (this.#state === DONE) {
        this.#behind += bytes.toString("latin1", at, at + EMPTY_LINE.length + 1);
        if (!EMPTY_LINE.startsWith(this.#behind)) throw malformed("bytes follow its end");
        return;
      } else {
        at = this.#takeLine(bytes, at);
      }
    }
  }

  /** Must be called at the end of the body. Throws IncompleteBody if the coding is incomplete. */
  finish(): readonly (readonly [name: string, value: string])[] {
    if (this.#state !== DONE) {
      // Some clients omit the last empty line; everything else must be present.
      if (this.#state !== TRAILER || this.#line !== "") throw new S3Error("IncompleteBody");
      this.#endTrailers();
    }
    if (this.#decoded !== this.#decodedLength) throw new S3Error("IncompleteBody");
    return this.#trailers;
  }

  #takeLine(bytes: Buffer, from: number): number {
    const lf = bytes.indexOf(0x0a, from);
    const end = lf < 0 ? bytes.length : lf;
    const bytesMax = this.#state === TRAILER ? TRAILER_BYTES_MAX : CHUNK_HEAD_BYTES_MAX;
    if (this.#line.length + end - from > bytesMax) throw malformed("a line is too long");
    this.#line += bytes.toString("latin1", from, end);
    if (lf < 0) return end;
    const line = this.#line;
    this.#line = "";
    const isWhole = line.endsWith("\r");
    if (!isWhole && this.#state !== TRAILER) throw malformed("a line does not end in CRLF");
    const text = isWhole ? line.slice(0, -1) : line;
    if (this.#state === HEAD) this.#startChunk(text);
    else if (this.#state === DATA_END) this.#closeChunk(text);
    else this.#takeTrailer(text);
    return lf + 1;
  }

  #startChunk(text: string): void {
    const match = CHUNK_HEAD.exec(text);
    if (match === null) throw malformed("a chunk's first line is not valid");
    const size = Number.parseInt(match[1]!, 16);
    this.#claimed = match[2];
    if (this.#seed !== undefined) {
      if (this.#claimed === undefined) throw malformed("a chunk has no signature");
      this.#hash = createHash("sha256");
    } else if (this.#claimed !== undefined) {
      throw malformed("a chunk has a signature although the payload is declared as unsigned");
    }
    this.#decoded += size;
    if (this.#decoded > this.#decodedLength) {
      throw new S3Error(
        "IncompleteBody",
        "The body has more bytes than x-amz-decoded-content-length.",
      );
    }
    this.#remaining = size;
    if (size > 0) {
      this.#state = DATA;
      return;
    }
    this.#checkChunk();
    this.#state = TRAILER;
  }

  #endData(): void {
    this.#state = DATA_END;
    this.#checkChunk();
  }

  #closeChunk(text: string): void {
    if (text !== "") throw malformed("a chunk is longer than its size");
    this.#state = HEAD;
  }

  #checkChunk(): void {
    if (this.#seed === undefined) return;
    const hash = this.#hash!.digest("hex");
    const expected = signChunk({ ...this.#seed, signature: this.#signature }, hash);
    if (!isSameSignature(expected, this.#claimed!)) throw new S3Error("SignatureDoesNotMatch");
    this.#signature = expected;
  }

  #takeTrailer(text: string): void {
    if (text === "") {
      this.#emptyLines += 1;
      if (this.#emptyLines > 1 || !this.#awaitsSignature()) this.#endTrailers();
      return;
    }
    this.#trailerBytes += text.length;
    if (this.#trailerBytes > TRAILER_BYTES_MAX) throw malformedTrailer("it is too long");
    const match = FIELD.exec(text);
    if (match === null) throw malformedTrailer("a field is not valid");
    const name = match[1]!.toLowerCase();
    const value = match[2]!;
    if (SIGNATURE_NAMES.has(name)) {
      this.#trailerSignature = value;
      return;
    }
    if (!this.#trailerNames.includes(name) || this.#trailers.some(([known]) => known === name)) {
      throw malformedTrailer(`the field ${name} was not announced in x-amz-trailer`);
    }
    if (this.#trailerSignature !== undefined)
      throw malformedTrailer("a field follows its signature");
    this.#trailerText += `${name}:${value}\n`;
    this.#trailers.push([name, value]);
  }

  #awaitsSignature(): boolean {
    return (
      this.#seed !== undefined && this.#trailers.length > 0 && this.#trailerSignature === undefined
    );
  }

  #endTrailers(): void {
    this.#state = DONE;
    const missing = this.#trailerNames.find(
      (name) => !this.#trailers.some(([given]) => given === name),
    );
    if (missing !== undefined) throw malformedTrailer(`the announced field ${missing} is missing`);
    if (this.#seed === undefined || this.#trailerNames.length === 0) return;
    const hash = hashHex(this.#trailerText);
    const expected = signTrailer({ ...this.#seed, signature: this.#signature }, hash);
    if (!isSameSignature(expected, this.#trailerSignature ?? "")) {
      throw new S3Error("SignatureDoesNotMatch");
    }
  }
}

function malformedTrailer(detail: string): S3Error {
  return new S3Error("MalformedTrailerError", `The trailer is not well-formed: ${detail}.`);
}

function malformed(detail: string): S3Error {
  return new S3Error("InvalidRequest", `The aws-chunked body is malformed: ${detail}.`);
}
