// Kafka record batches v2: codec, checks and compression.
export { crc32c, crc32cTable } from "./crc32c.ts";
export {
  BATCH_HEADER_BYTES,
  BATCH_PREFIX_BYTES,
  compressionOf,
  COMPRESSIONS,
  isBatchIntact,
  isControl,
  isTransactional,
  readBatchHeader,
  readInt64,
  stampBatch,
  validateBatch,
  writeInt64,
  type BatchHeader,
  type Compression,
} from "./header.ts";
export {
  decodeRecordSection,
  encodeBatch,
  encodeKept,
  pickRecords,
  sealBatch,
  type BatchFields,
  type NewRecord,
  type RecordHeader,
  type StoredRecord,
} from "./records.ts";
export {
  boundSectionBytes,
  decodeBatch,
  decodePlainBatch,
  DECOMPRESSED_BYTES_MAX_DEFAULT,
  splitBatches,
  unpackBatch,
  unpackPlainBatch,
  type DecodedBatch,
} from "./compression.ts";
export {
  findOutOfBounds,
  findOutOfBoundsSync,
  sizeOfRecord,
  type OutOfBounds,
  type RecordBounds,
} from "./bounds.ts";
