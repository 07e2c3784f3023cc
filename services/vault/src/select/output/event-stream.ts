// The event stream of SelectObjectContent ("Appendix: SelectObjectContent Response" in the S3 API reference).
//
//   total length · length of headers · CRC of both · headers · payload · CRC of all of it       numbers have 4 bytes
//   header:  length of name (1) · name · 7, for strings (1) · length of value (2) · value
import { crc32 } from "node:zlib";
import type { SelectStats } from "../messages.ts";

const PRELUDE_BYTES = 12;
const CHECKSUM_BYTES = 4;
const STRING_TYPE = 7;
/** Limit of a Records message, of S3. */
const RECORDS_BYTES_MAX = 1024 * 1024;

function encodeMessage(headers: readonly (readonly [string, string])[], payload: Buffer): Buffer {
  const encoded = Buffer.concat(headers.map(encodeHeader));
  const size = PRELUDE_BYTES + encoded.length + payload.length + CHECKSUM_BYTES;
  const message = Buffer.allocUnsafe(size);
  message.writeUInt32BE(size, 0);
  message.writeUInt32BE(encoded.length, 4);
  message.writeUInt32BE(crc32(message.subarray(0, 8)), 8);
  encoded.copy(message, PRELUDE_BYTES);
  payload.copy(message, PRELUDE_BYTES + encoded.length);
  const end = size - CHECKSUM_BYTES;
  message.writeUInt32BE(crc32(message.subarray(0, end)), end);
  return message;
}

function encodeHeader([name, value]: readonly [string, string]): Buffer {
  const nameBytes = Buffer.from(name);
  const valueBytes = Buffer.from(value);
  const length = Buffer.alloc(3);
  length.writeUInt8(STRING_TYPE, 0);
  length.writeUInt16BE(valueBytes.length, 1);
  return Buffer.concat([Buffer.from([nameBytes.length]), nameBytes, length, valueBytes]);
}

function encodeEvent(type: string, contentType: string | undefined, payload: Buffer): Buffer {
  const headers: [string, string][] = [
    [":message-type", "event"],
    [":event-type", type],
  ];
  if (contentType !== undefined) headers.push([":content-type", contentType]);
  return encodeMessage(headers, payload);
}

/** Messages with records, each of at most 1 MiB. */
export function encodeRecords(records: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let at = 0; at < records.length; at += RECORDS_BYTES_MAX) {
    const part = records.subarray(at, at + RECORDS_BYTES_MAX);
    messages.push(encodeEvent("Records", "application/octet-stream", part));
  }
  return messages;
}

/** The message that keeps the connection alive. */
export function encodeContinuation(): Buffer {
  return encodeEvent("Cont", undefined, Buffer.alloc(0));
}

/** The message with the statistics so far, or at the end. */
export function encodeStats(type: "Progress" | "Stats", stats: SelectStats): Buffer {
  const { scannedBytes, processedBytes, returnedBytes } = stats;
  const document =
    `<?xml version="1.0" encoding="UTF-8"?><${type}><BytesScanned>${scannedBytes}</BytesScanned>` +
    `<BytesProcessed>${processedBytes}</BytesProcessed><BytesReturned>${returnedBytes}</BytesReturned></${type}>`;
  return encodeEvent(type, "text/xml", Buffer.from(document));
}

/** The last message of a complete answer. */
export function encodeEnd(): Buffer {
  return encodeEvent("End", undefined, Buffer.alloc(0));
}

/** The message of an error, which is the last one. */
export function encodeError(code: string, message: string): Buffer {
  const headers = [
    [":error-code", code],
    // The length of a value has two bytes.
    [":error-message", message.slice(0, 4_096)],
    [":message-type", "error"],
  ] as const;
  return encodeMessage(headers, Buffer.alloc(0));
}
