// Requests and responses as frames: length, header, body.
import type { WireMessage } from "./message.ts";
import { Reader } from "./reader.ts";
import { Writer } from "./writer.ts";

/*
 * Kafka protocol guide, "Common Request and Response Structure":
 *
 *   frame            => length(INT32) header body
 *   request header 1 => api_key(INT16) api_version(INT16) correlation_id(INT32) client_id(NULLABLE_STRING)
 *   request header 2 => … the same, client_id in the classic form, TAG_BUFFER       flexible versions
 *   response header 0 => correlation_id(INT32)
 *   response header 1 => correlation_id(INT32) TAG_BUFFER     flexible versions, but for ApiVersions
 */

/** Size of the length before each frame. */
export const FRAME_LENGTH_BYTES = 4;
const API_VERSIONS_KEY = 18;

/** The fields of a request header that every version has. */
export interface RequestHeader {
  apiKey: number;
  apiVersion: number;
  correlationId: number;
  clientId: string | null;
}

/** Reads the header of a request; `reader` is then at the tags and the body. */
export function readRequestHeader(reader: Reader): RequestHeader {
  const apiKey = reader.readInt16();
  const apiVersion = reader.readInt16();
  const correlationId = reader.readInt32();
  return { apiKey, apiVersion, correlationId, clientId: reader.readNullableString() };
}

/**
 * Reads the body after a request header. Bytes after a complete body are left in `reader`: Apache Kafka ignores them, and
 * librdkafka 2.1 and newer sends some with every Metadata request for all topics.
 */
export function readRequestBody<Q>(
  reader: Reader,
  message: WireMessage<Q, never, unknown, never>,
  version: number,
): Q {
  if (version >= message.flexibleFrom) {
    reader.flexible = true;
    skipTags(reader);
  }
  return message.request.read(reader, version);
}

/** Encodes a request, including its length. */
export function writeRequest<QI>(
  message: WireMessage<unknown, QI, unknown, never>,
  header: Omit<RequestHeader, "apiKey">,
  body: QI,
): readonly Buffer[] {
  const writer = new Writer();
  writer.writeInt16(message.key);
  writer.writeInt16(header.apiVersion);
  writer.writeInt32(header.correlationId);
  writer.writeNullableString(header.clientId);
  if (header.apiVersion >= message.flexibleFrom) {
    writer.flexible = true;
    writer.writeUnsignedVarint(0);
  }
  message.request.write(writer, body, header.apiVersion);
  return withLength(writer);
}

/** Encodes a response, including its length. */
export function writeResponse<RI>(
  message: WireMessage<unknown, never, unknown, RI>,
  version: number,
  correlationId: number,
  body: RI,
): readonly Buffer[] {
  const writer = new Writer();
  writer.writeInt32(correlationId);
  if (version >= message.flexibleFrom) {
    writer.flexible = true;
    if (message.key !== API_VERSIONS_KEY) writer.writeUnsignedVarint(0);
  }
  message.response.write(writer, body, version);
  return withLength(writer);
}

/** Reads a whole response without its length. */
export function readResponse<R>(
  frame: Buffer,
  message: WireMessage<unknown, never, R, never>,
  version: number,
): { correlationId: number; body: R } {
  const reader = new Reader(frame);
  const correlationId = reader.readInt32();
  if (version >= message.flexibleFrom) {
    reader.flexible = true;
    if (message.key !== API_VERSIONS_KEY) skipTags(reader);
  }
  const body = message.response.read(reader, version);
  reader.expectEnd();
  return { correlationId, body };
}

function skipTags(reader: Reader): void {
  const count = reader.readUnsignedVarint();
  for (let index = 0; index < count; index++) {
    reader.readUnsignedVarint();
    reader.readSlice(reader.readUnsignedVarint());
  }
}

function withLength(writer: Writer): readonly Buffer[] {
  const length = Buffer.allocUnsafe(FRAME_LENGTH_BYTES);
  length.writeInt32BE(writer.bytes);
  return [length, ...writer.finish()];
}
