// Decompresses the bytes of an object, piece by piece.
import { Readable } from "node:stream";
import {
  constants,
  createGunzip,
  createZstdDecompress,
  type Gunzip,
  type ZstdDecompress,
} from "node:zlib";
import { SelectError } from "../language/fault.ts";
import type { Compression } from "../request.ts";
import { Bzip2Decoder } from "./bzip2.ts";
import { checkZstdFrames } from "./zstd-frames.ts";

const PIECE_BYTES = 256 * 1024;
/** Base-2 logarithm of the largest window of zstd: 128 MiB. */
const WINDOW_LOG_MAX = 27;
/** Beyond this size, the object must not grow by more than the factor. */
const FREE_BYTES = 1024 ** 3;
const GROWTH_MAX = 1_000;

/** Yields the bytes of an object. Throws TruncatedInput for bytes that are not compressed in this way. */
export function decompress(
  compression: Compression,
  pieces: AsyncGenerator<Buffer, void, undefined>,
): AsyncGenerator<Buffer, void, undefined> {
  switch (compression) {
    case "NONE":
      return pieces;
    case "BZIP2":
      return limitGrowth(pieces, decodeBzip2);
    case "GZIP":
      return limitGrowth(pieces, (counted) =>
        inflate(counted, createGunzip({ chunkSize: PIECE_BYTES })),
      );
    case "ZSTD":
      return limitGrowth(pieces, (counted) =>
        inflate(
          checkZstdFrames(counted),
          createZstdDecompress({
            chunkSize: PIECE_BYTES,
            params: { [constants.ZSTD_d_windowLogMax]: WINDOW_LOG_MAX },
          }),
        ),
      );
    default:
      return compression satisfies never;
  }
}

async function* limitGrowth(
  pieces: AsyncGenerator<Buffer, void, undefined>,
  decode: (
    counted: AsyncGenerator<Buffer, void, undefined>,
  ) => AsyncGenerator<Buffer, void, undefined>,
): AsyncGenerator<Buffer, void, undefined> {
  let read = 0;
  let written = 0;
  async function* count(): AsyncGenerator<Buffer, void, undefined> {
    for await (const piece of pieces) {
      read += piece.length;
      yield piece;
    }
  }
  for await (const piece of decode(count())) {
    written += piece.length;
    if (written > FREE_BYTES && written > read * GROWTH_MAX) {
      throw new SelectError(
        "QueryLimitExceeded",
        `The object grows to more than ${GROWTH_MAX} times its size.`,
      );
    }
    yield piece;
  }
}

async function* decodeBzip2(
  pieces: AsyncGenerator<Buffer, void, undefined>,
): AsyncGenerator<Buffer, void, undefined> {
  const decoder = new Bzip2Decoder();
  for await (const piece of pieces) {
    decoder.feed(piece);
    for (let block = decoder.next(); block !== undefined; block = decoder.next()) yield block;
  }
  decoder.end();
  for (let block = decoder.next(); block !== undefined; block = decoder.next()) yield block;
}

async function* inflate(
  pieces: AsyncGenerator<Buffer, void, undefined>,
  decoder: Gunzip | ZstdDecompress,
): AsyncGenerator<Buffer, void, undefined> {
  const source = Readable.from(pieces, { objectMode: true, highWaterMark: 1 });
  // A failure of the source is not one of the compression.
  let failure: unknown;
  source.on("error", (error) => {
    failure = error;
    decoder.destroy(error);
  });
  source.pipe(decoder);
  try {
    for await (const piece of decoder) yield piece as Buffer;
  } catch (error) {
    if (failure !== undefined) throw failure;
    throw new SelectError("TruncatedInput", undefined, undefined, { cause: error });
  } finally {
    source.destroy();
    decoder.destroy();
  }
}
