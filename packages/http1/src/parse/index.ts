// Parsers of HTTP/1.1 messages.
export { isAuthority } from "./authority.ts";
export { ChunkedDecoder, Chunk } from "./chunked-decoder.ts";
export type { ChunkStatus } from "./chunked-decoder.ts";
export { equalsIgnoringCase, FieldBlock } from "./field-block.ts";
export { findKnownField, Known, nameOfKnownField } from "./known-fields.ts";
export type { KnownField } from "./known-fields.ts";
export { findMethod, isIdempotent, Method, nameOfMethod } from "./methods.ts";
export type { MethodId } from "./methods.ts";
export { refusals } from "./refusals.ts";
export type { Refusal, RefusalCode, RefusalStatus } from "./refusals.ts";
export type { RequestHead, ResponseHead } from "./heads.ts";
export { TargetForm } from "./parsed-request.ts";
export type { TargetFormKind } from "./parsed-request.ts";
export { RequestParser } from "./request-parser.ts";
export type { RequestLimits } from "./request-parser.ts";
export { ResponseParser } from "./response-parser.ts";
export { Framing, Parse } from "./status.ts";
export type { FramingKind, HeadLimits, ParseStatus } from "./status.ts";
