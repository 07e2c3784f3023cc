// Encodes and decodes journal entries, which are sequences of operations.
import { BATCH_HEADER_BYTES, readInt64, writeInt64 } from "../batch/header.ts";
import type { PartitionDescription } from "../partition/description.ts";
import { LogError } from "../errors.ts";
import type { TopicConfig } from "../types.ts";

/*
 * An entry's body is a sequence of operations, each a type byte and its fields:
 *
 *   1 append      │ partition uid 4 │ batch bytes 4 │ batch …
 *   2 in place    │ partition uid 4 │ segment base 8 │ generation 4 │ position 8 │ bytes 8 │
 *                 │ first offset 8 │ next offset 8 │ max time 8 │ leader epoch 4 │
 *                 │ producer headers 4 │ 61 each …
 *   3 trim        │ partition uid 4 │ log start offset 8 │
 *   4 catalogue   │ bytes 4 │ JSON …
 *   5 describe    │ bytes 4 │ JSON …
 */

/** A batch whose bytes are in the journal itself. */
interface AppendOperation {
  kind: "append";
  uid: number;
  batch: Buffer;
}

/**
 * Batches that were written directly to their segment, from `position` on. They include the batches that
 * the partition held only in the journal before, so `firstOffset` may be lower than the first new one.
 * `producerHeaders` are the headers of batches of idempotent producers.
 */
export interface InPlaceOperation {
  kind: "in-place";
  uid: number;
  segmentBase: number;
  generation: number;
  position: number;
  bytes: number;
  firstOffset: number;
  nextOffset: number;
  maxTimestamp: number;
  leaderEpoch: number;
  producerHeaders: Buffer[];
}

/** Deletes the records below `logStart`. */
export interface TrimOperation {
  kind: "trim";
  uid: number;
  logStart: number;
}

/** Changes of the catalogue; topic ids in hex. Each is idempotent, so it can be replayed twice. */
export type CatalogueOperation =
  | {
      kind: "create-topic";
      id: string;
      name: string;
      firstUid: number;
      partitions: number;
      config: TopicConfig;
    }
  | { kind: "delete-topic"; id: string }
  | { kind: "configure-topic"; id: string; config: TopicConfig }
  | { kind: "add-partitions"; id: string; firstUid: number; firstIndex: number; count: number };

/**
 * The partition that a uid belongs to. Written before the first batch of a partition in each file, so
 * that a file can be read without the manifest.
 */
interface DescribeOperation {
  kind: "describe";
  partition: PartitionDescription;
}

/** All operations of an entry. */
export type Operation =
  | AppendOperation
  | InPlaceOperation
  | TrimOperation
  | CatalogueOperation
  | DescribeOperation;

const IN_PLACE_FIXED_BYTES = 65;

/** Encodes one operation as pieces for a vectored write; a batch's bytes are not copied. */
export function encodeOperation(operation: Operation): Buffer[] {
  switch (operation.kind) {
    case "append": {
      const head = Buffer.allocUnsafe(9);
      head[0] = 1;
      head.writeUInt32BE(operation.uid, 1);
      head.writeUInt32BE(operation.batch.length, 5);
      return [head, operation.batch];
    }
    case "in-place":
      return [encodeInPlace(operation), ...operation.producerHeaders];
    case "trim": {
      const bytes = Buffer.allocUnsafe(13);
      bytes[0] = 3;
      bytes.writeUInt32BE(operation.uid, 1);
      writeInt64(bytes, operation.logStart, 5);
      return [bytes];
    }
    case "describe":
      return encodeJson(5, operation.partition);
    case "create-topic":
    case "delete-topic":
    case "configure-topic":
    case "add-partitions":
      break;
  }
  return encodeJson(4, operation satisfies CatalogueOperation);
}

function encodeJson(type: number, value: unknown): Buffer[] {
  const json = Buffer.from(JSON.stringify(value));
  const head = Buffer.allocUnsafe(5);
  head[0] = type;
  head.writeUInt32BE(json.length, 1);
  return [head, json];
}

/** Decodes an entry's body. Its checksum matched, so a parse error is `corrupt`. */
export function decodeEntry(body: Buffer): Operation[] {
  const operations: Operation[] = [];
  for (let at = 0; at < body.length;) {
    const [operation, bytes] = decodeOperation(body.subarray(at));
    operations.push(operation);
    at += bytes;
  }
  return operations;
}

function encodeInPlace(operation: InPlaceOperation): Buffer {
  const bytes = Buffer.allocUnsafe(IN_PLACE_FIXED_BYTES);
  bytes[0] = 2;
  bytes.writeUInt32BE(operation.uid, 1);
  writeInt64(bytes, operation.segmentBase, 5);
  bytes.writeUInt32BE(operation.generation, 13);
  writeInt64(bytes, operation.position, 17);
  writeInt64(bytes, operation.bytes, 25);
  writeInt64(bytes, operation.firstOffset, 33);
  writeInt64(bytes, operation.nextOffset, 41);
  writeInt64(bytes, operation.maxTimestamp, 49);
  bytes.writeUInt32BE(operation.leaderEpoch, 57);
  bytes.writeUInt32BE(operation.producerHeaders.length, 61);
  return bytes;
}

function decodeOperation(bytes: Buffer): [Operation, number] {
  try {
    switch (bytes[0]) {
      case 1: {
        const end = 9 + bytes.readUInt32BE(5);
        if (end > bytes.length) break;
        const batch = bytes.subarray(9, end);
        return [{ kind: "append", uid: bytes.readUInt32BE(1), batch }, end];
      }
      case 2:
        return decodeInPlace(bytes);
      case 3: {
        const logStart = readInt64(bytes, 5);
        return [{ kind: "trim", uid: bytes.readUInt32BE(1), logStart }, 13];
      }
      case 4: {
        const end = 5 + bytes.readUInt32BE(1);
        return [JSON.parse(bytes.toString("utf8", 5, end)) as CatalogueOperation, end];
      }
      case 5: {
        const end = 5 + bytes.readUInt32BE(1);
        const partition = JSON.parse(bytes.toString("utf8", 5, end)) as PartitionDescription;
        return [{ kind: "describe", partition }, end];
      }
      default:
    }
  } catch (error) {
    throw new LogError("corrupt", "a journal entry cannot be parsed", { cause: error });
  }
  throw new LogError("corrupt", `a journal entry has an unknown operation ${bytes[0]}`);
}

function decodeInPlace(bytes: Buffer): [InPlaceOperation, number] {
  const headerCount = bytes.readUInt32BE(61);
  const end = IN_PLACE_FIXED_BYTES + headerCount * BATCH_HEADER_BYTES;
  if (end > bytes.length) throw new RangeError("producer headers run past the entry");
  const producerHeaders: Buffer[] = [];
  for (let at = IN_PLACE_FIXED_BYTES; at < end; at += BATCH_HEADER_BYTES) {
    producerHeaders.push(bytes.subarray(at, at + BATCH_HEADER_BYTES));
  }
  const operation: InPlaceOperation = {
    kind: "in-place",
    uid: bytes.readUInt32BE(1),
    segmentBase: readInt64(bytes, 5),
    generation: bytes.readUInt32BE(13),
    position: readInt64(bytes, 17),
    bytes: readInt64(bytes, 25),
    firstOffset: readInt64(bytes, 33),
    nextOffset: readInt64(bytes, 41),
    maxTimestamp: readInt64(bytes, 49),
    leaderEpoch: bytes.readUInt32BE(57),
    producerHeaders,
  };
  return [operation, end];
}
