// Compresses the content of one response as it arrives.
import { pipeline, Readable, type Transform } from "node:stream";
import * as zlib from "node:zlib";
import type { ContentFilter, ContentOutput } from "@platform/http1";
import type { ContentCoding } from "@platform/kernel/content";

/** Content of a response that pauses for this long is sent as far as it is compressed. */
const IDLE_FLUSH_MS = 20;
const CHUNK_BYTES = 16_384;

interface Codec {
  create: (sizeHint: number) => Transform & { flush: (kind: number) => void };
  flushKind: number;
  /** Approximate memory of one stream. */
  bytes: number;
}

/** Fast levels: a proxy compresses the same response again and again. Windows bound the memory. */
const CODECS: Readonly<Record<ContentCoding, Codec>> = {
  br: {
    create: (sizeHint) =>
      zlib.createBrotliCompress({
        chunkSize: CHUNK_BYTES,
        params: {
          [zlib.constants.BROTLI_PARAM_QUALITY]: 4,
          [zlib.constants.BROTLI_PARAM_LGWIN]: 18,
          ...(sizeHint < 0 ? {} : { [zlib.constants.BROTLI_PARAM_SIZE_HINT]: sizeHint }),
        },
      }),
    flushKind: zlib.constants.BROTLI_OPERATION_FLUSH,
    bytes: 1_572_864,
  },
  zstd: {
    create: () =>
      zlib.createZstdCompress({
        chunkSize: CHUNK_BYTES,
        params: {
          [zlib.constants.ZSTD_c_compressionLevel]: 3,
          [zlib.constants.ZSTD_c_windowLog]: 18,
        },
      }),
    flushKind: zlib.constants.ZSTD_e_flush,
    bytes: 1_572_864,
  },
  gzip: {
    create: () => zlib.createGzip({ chunkSize: CHUNK_BYTES, level: 5 }),
    flushKind: zlib.constants.Z_SYNC_FLUSH,
    bytes: 327_680,
  },
};

/** Memory of all compressors of a worker. */
export class CompressionBudget {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Takes the memory of one stream; undefined if there is none left. Call the result once to give it back. */
  claim(coding: ContentCoding): (() => void) | undefined {
    const { bytes } = CODECS[coding];
    if (this.#bytes + bytes > this.#bytesMax) return undefined;
    this.#bytes += bytes;
    return () => {
      this.#bytes -= bytes;
    };
  }
}

/** Compresses content that is read as fast as it is sent. Throws if it cannot be read. */
export async function* compressPieces(
  pieces: AsyncIterable<Buffer>,
  coding: ContentCoding,
  sizeBytes: number,
): AsyncGenerator<Buffer> {
  const stream = CODECS[coding].create(sizeBytes);
  // A failure of the source destroys the stream, which then throws below.
  pipeline(Readable.from(pieces), stream, () => undefined);
  for await (const piece of stream) yield piece as Buffer;
}

/** Options of {@link Compressor}. */
export interface CompressorOptions {
  coding: ContentCoding;
  /** Size of the content, -1 if unknown. */
  sizeBytes: number;
  /** Sends each piece without delay, as for event streams. */
  isStream: boolean;
  /** Gives the memory back. */
  release: () => void;
}

/** A filter of one response. */
export class Compressor implements ContentFilter {
  readonly #options: CompressorOptions;
  readonly #codec: Codec;
  #stream: ReturnType<Codec["create"]> | undefined;
  #idleTimer: NodeJS.Timeout | undefined;
  #isReleased = false;

  constructor(options: CompressorOptions) {
    this.#options = options;
    this.#codec = CODECS[options.coding];
  }

  onBytes(bytes: Buffer, output: ContentOutput): void {
    const stream = (this.#stream ??= this.#open(output));
    // The bytes are in a read buffer that is reused.
    if (!stream.write(Buffer.from(bytes))) output.pause();
    if (this.#options.isStream) stream.flush(this.#codec.flushKind);
    else this.#flushWhenIdle(stream);
  }

  onEnd(output: ContentOutput): void {
    clearTimeout(this.#idleTimer);
    (this.#stream ??= this.#open(output)).end();
  }

  onDrain(): void {
    this.#stream?.resume();
  }

  onAbort(): void {
    clearTimeout(this.#idleTimer);
    this.#stream?.destroy();
    this.#release();
  }

  #open(output: ContentOutput): ReturnType<Codec["create"]> {
    const stream = this.#codec.create(this.#options.sizeBytes);
    stream.on("data", (piece: Buffer) => {
      if (!output.write(piece)) stream.pause();
    });
    stream.on("drain", () => output.resume());
    stream.on("end", () => {
      this.#release();
      output.end();
    });
    stream.on("error", (error) => {
      this.#release();
      output.fail(error);
    });
    return stream;
  }

  #flushWhenIdle(stream: ReturnType<Codec["create"]>): void {
    if (this.#idleTimer !== undefined) {
      this.#idleTimer.refresh();
      return;
    }
    this.#idleTimer = setTimeout(() => {
      if (!stream.writableEnded && !stream.destroyed) stream.flush(this.#codec.flushKind);
    }, IDLE_FLUSH_MS);
    this.#idleTimer.unref();
  }

  #release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#options.release();
  }
}
