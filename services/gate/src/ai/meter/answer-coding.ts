// Answers that a provider has compressed although it was asked not to.
import type { Transform } from "node:stream";
import * as zlib from "node:zlib";
import type { ContentFilter, ContentOutput, ResponseDraft } from "@platform/http1";
import { decodeContent } from "../../recording/body-content.ts";

/** Coding of an answer; `unknown` for those that the gateway cannot decode, and for several at the same time. */
export type AnswerCoding = "identity" | "gzip" | "deflate" | "br" | "zstd" | "unknown";

const CHUNK_BYTES = 16_384;
const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: () =>
    zlib.createGunzip({ chunkSize: CHUNK_BYTES, finishFlush: zlib.constants.Z_SYNC_FLUSH }),
  deflate: () =>
    zlib.createInflate({ chunkSize: CHUNK_BYTES, finishFlush: zlib.constants.Z_SYNC_FLUSH }),
  br: () => zlib.createBrotliDecompress({ chunkSize: CHUNK_BYTES }),
  zstd: () => zlib.createZstdDecompress({ chunkSize: CHUNK_BYTES }),
};
const OF_THE_CODING = /^(?:content-(?:encoding|digest|md5)|digest|repr-digest)$/i;

/** Reads the coding of an answer, and removes it from the head unless it is unknown. */
export function takeCoding(draft: ResponseDraft): AnswerCoding {
  const codings = draft.headers
    .flatMap(([name, value]) => (name.toLowerCase() === "content-encoding" ? [value] : []))
    .flatMap((value) => value.split(","))
    .map((coding) => coding.trim().toLowerCase())
    .map((coding) => (coding === "x-gzip" ? "gzip" : coding))
    .filter((coding) => coding !== "" && coding !== "identity");
  const [coding = "identity"] = codings;
  if (coding === "identity") return coding;
  if (codings.length > 1 || !Object.hasOwn(DECODERS, coding)) return "unknown";
  draft.headers = draft.headers.filter(([name]) => !OF_THE_CODING.test(name));
  draft.contentLength = -1;
  return coding as AnswerCoding;
}

/** Decodes a whole answer; undefined if it is damaged or larger than `bytesMax`. */
export function decodeAnswer(
  content: Buffer,
  coding: AnswerCoding,
  bytesMax: number,
): Buffer | Promise<Buffer | undefined> {
  if (coding === "identity") return content;
  return decodeContent({ fields: [["content-encoding", coding]], content }, bytesMax);
}

/** Decodes a stream as it arrives. */
export class StreamDecoder implements ContentFilter {
  readonly #coding: AnswerCoding;
  #stream: Transform | undefined;

  constructor(coding: AnswerCoding) {
    this.#coding = coding;
  }

  onBytes(bytes: Buffer, output: ContentOutput): void {
    const stream = (this.#stream ??= this.#open(output));
    // The bytes are in a read buffer that is reused.
    if (!stream.write(Buffer.from(bytes))) output.pause();
  }

  onEnd(output: ContentOutput): void {
    (this.#stream ??= this.#open(output)).end();
  }

  onDrain(): void {
    this.#stream?.resume();
  }

  onAbort(): void {
    this.#stream?.destroy();
  }

  #open(output: ContentOutput): Transform {
    const stream = DECODERS[this.#coding]!();
    stream.on("data", (piece: Buffer) => {
      if (!output.write(piece)) stream.pause();
    });
    stream.on("drain", () => output.resume());
    stream.on("end", () => output.end());
    stream.on("error", (error) => output.fail(error));
    return stream;
  }
}
