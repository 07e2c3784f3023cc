// Decodes whole batches of any compression to records, within a size bound.
import { gunzip, zstdDecompress } from "node:zlib";
import { LogError } from "../errors.ts";
import {
  BATCH_HEADER_BYTES,
  compressionOf,
  isBatchIntact,
  readBatchHeader,
  type BatchHeader,
} from "./header.ts";
import { boundLz4Length, decodeLz4 } from "./lz4.ts";
import { decodeRecordSection, type StoredRecord } from "./records.ts";
import { decodeSnappy, readSnappyLength } from "./snappy.ts";

/** Default bound of the decompressed size of a batch. */
export const DECOMPRESSED_BYTES_MAX_DEFAULT = 64 * 1024 * 1024;

/** A batch and its records. */
export interface DecodedBatch {
  header: BatchHeader;
  records: StoredRecord[];
}

/**
 * Decodes the batch at the start of `bytes`. gzip and zstd run outside the event loop, snappy and lz4 in it,
 * with pauses.
 * Throws `corrupt` if the checksum does not match, `invalid-batch`, or `too-large` past `bytesMax` decompressed bytes.
 */
export async function decodeBatch(
  bytes: Buffer,
  bytesMax = DECOMPRESSED_BYTES_MAX_DEFAULT,
): Promise<DecodedBatch> {
  const { header, section } = splitBatch(bytes);
  if (!isBatchIntact(bytes)) {
    throw new LogError("corrupt", `the batch at offset ${header.baseOffset} is damaged`);
  }
  if (compressionOf(header.attributes) === "none") {
    return { header, records: decodeRecordSection(header, section) };
  }
  const plain = await decompress(header, section, bytesMax);
  return { header, records: decodeRecordSection(header, plain) };
}

/** A batch and its decompressed record section. */
export interface UnpackedBatch {
  header: BatchHeader;
  section: Buffer;
}

/** Decompresses the batch at the start of `bytes`, as `decodeBatch` does, but does not verify its checksum. */
export async function unpackBatch(
  bytes: Buffer,
  bytesMax = DECOMPRESSED_BYTES_MAX_DEFAULT,
): Promise<UnpackedBatch> {
  const { header, section } = splitBatch(bytes);
  return { header, section: await decompress(header, section, bytesMax) };
}

/** As `unpackBatch`, for an uncompressed batch; `undefined` if it is compressed. */
export function unpackPlainBatch(bytes: Buffer): UnpackedBatch | undefined {
  const batch = splitBatch(bytes);
  return compressionOf(batch.header.attributes) === "none" ? batch : undefined;
}

/** Upper bound of the decompressed size of the records, without decompressing them; infinite for gzip and zstd. */
export function boundSectionBytes(bytes: Buffer): number {
  const { header, section } = splitBatch(bytes);
  switch (compressionOf(header.attributes)) {
    case "none":
      return section.length;
    case "snappy":
      return readSnappyLength(section);
    case "lz4":
      return boundLz4Length(section);
    default:
      return Infinity;
  }
}

/** Decodes an uncompressed batch synchronously; `undefined` if it is compressed (see `decodeBatch`). */
export function decodePlainBatch(bytes: Buffer): DecodedBatch | undefined {
  const plain = unpackPlainBatch(bytes);
  if (plain === undefined) return undefined;
  return { header: plain.header, records: decodeRecordSection(plain.header, plain.section) };
}

/** Splits concatenated batches; an incomplete last batch is left out. */
export function* splitBatches(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; ;) {
    const header = readBatchHeader(bytes, at);
    if (header === undefined || at + header.bytes > bytes.length) return;
    yield bytes.subarray(at, at + header.bytes);
    at += header.bytes;
  }
}

function splitBatch(bytes: Buffer): UnpackedBatch {
  const header = readBatchHeader(bytes);
  if (header === undefined || header.bytes > bytes.length) {
    throw new LogError("invalid-batch", "not a record batch: truncated");
  }
  return { header, section: bytes.subarray(BATCH_HEADER_BYTES, header.bytes) };
}

async function decompress(header: BatchHeader, section: Buffer, bytesMax: number): Promise<Buffer> {
  switch (compressionOf(header.attributes)) {
    case "gzip":
      return inflate(gunzip, section, bytesMax);
    case "zstd":
      return inflate(zstdDecompress, section, bytesMax);
    case "snappy":
      return decodeSnappy(section, bytesMax);
    case "lz4":
      return decodeLz4(section, bytesMax);
    case "none":
      return section;
    case undefined:
      break;
  }
  throw new LogError("invalid-batch", "unknown compression");
}

type Inflate = (
  bytes: Buffer,
  options: { maxOutputLength: number },
  done: (error: Error | null, plain: Buffer) => void,
) => void;

function inflate(decode: Inflate, bytes: Buffer, bytesMax: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    decode(bytes, { maxOutputLength: bytesMax }, (error, plain) => {
      if (error === null) return resolve(plain);
      const large = (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE";
      const reason = large
        ? `decompressed batch over ${bytesMax} bytes`
        : "compression is malformed";
      reject(new LogError(large ? "too-large" : "invalid-batch", reason, { cause: error }));
    });
  });
}
