// Kafka record batches v2: codec, checks and compression.
export { crc32c, crc32cTable } from "./crc32c.ts";
export {
  batchHeaderBytes,
  batchPrefixBytes,
  compressionOf,
  compressions,
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
  decodeBatch,
  decodePlainBatch,
  decompressedBytesMaxDefault,
  splitBatches,
  type DecodedBatch,
} from "./compression.ts";
