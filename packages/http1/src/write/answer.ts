// Writes responses, with framing by method, status and version, from objects or prepared bytes.
import { Method, type MethodId } from "../parse/methods.ts";
import { Framing, type FramingKind } from "../parse/status.ts";
import { HeadWriter } from "./head-writer.ts";
import type { HttpDate } from "./http-date.ts";

const NO_BYTES = Buffer.alloc(0);
/** Longer content is not copied after its head: two buffers are passed to the socket in one call. */
const COPIED_BYTES_MAX = 32_768;
const TRANSFER_ENCODING_CHUNKED = Buffer.from("Transfer-Encoding: chunked\r\n");
/** Fields that only the writer sets, with `_` as an alias of `-` as in CGI. */
const OWN_FIELD = /^(?:connection|content[-_]length|date|transfer[-_]encoding)$/i;

/** Fields of a response as pairs, so that names can repeat; without framing fields and Connection. */
export type AnswerHeaders = readonly (readonly [name: string, value: string])[];

/** A response with its whole content. */
export interface Answer {
  /** 200 to 599. */
  readonly status: number;
  readonly headers?: AnswerHeaders;
  /** Strings are sent as UTF-8. Bytes must not be modified afterwards. Default: no content. */
  readonly body?: string | Uint8Array;
}

/** Properties of the exchange that determine the framing of a response. */
export interface AnswerContext {
  readonly methodId: MethodId;
  /** The client's minor version. */
  readonly minor: 0 | 1;
  /** True if the connection stays open after the response. */
  readonly keepAlive: boolean;
  readonly nowMs: number;
}

/** Thrown if a caller sets a field that only the writer sets. */
export class AnswerError extends Error {
  readonly code = "framing_field_set";

  constructor(name: string) {
    super(`The field ${name} is set by the writer.`);
    this.name = "AnswerError";
  }
}

/**
 * Writes a whole response. Returns long content that the caller must send after the head, otherwise null. A response to
 * HEAD has only the head with the content's length; 204 and 304 have no content and no length (RFC 9110 §8.6).
 */
export function writeAnswer(
  writer: HeadWriter,
  date: HttpDate,
  answer: Answer,
  context: AnswerContext,
): Buffer | null {
  writer.statusLine(answer.status);
  writeHeaders(writer, answer.headers);
  const body = bytesOf(answer.body);
  const isBodiless = answer.status === 204 || answer.status === 304;
  if (!isBodiless) writer.contentLength(body.length);
  writer.date(date, context.nowMs);
  writer.connection(context.keepAlive, context.minor);
  writer.endHead();
  return isBodiless || context.methodId === Method.HEAD ? null : writeContent(writer, body);
}

/**
 * Writes the head of a streamed response and returns its framing: None (HEAD, 204, 304), Length if `contentLength` is
 * known, otherwise Chunked, or UntilClose for HTTP/1.0: then the connection must be closed after the content.
 */
export function writeStreamHead(
  writer: HeadWriter,
  date: HttpDate,
  head: {
    readonly status: number;
    readonly headers?: AnswerHeaders;
    readonly contentLength?: number;
  },
  context: AnswerContext,
): FramingKind {
  writer.statusLine(head.status);
  writeHeaders(writer, head.headers);
  const framing = chooseFraming(head.status, head.contentLength, context);
  const isBodiless = head.status === 204 || head.status === 304;
  if (head.contentLength !== undefined && !isBodiless) writer.contentLength(head.contentLength);
  else if (!isBodiless && context.minor === 1) writer.raw(TRANSFER_ENCODING_CHUNKED);
  writer.date(date, context.nowMs);
  writer.connection(context.keepAlive && framing !== Framing.UntilClose, context.minor);
  writer.endHead();
  return framing;
}

/** A prepared response; only Date and Connection are added each time. */
export interface PreparedAnswer {
  readonly status: number;
  /** Status line and fields including the length. */
  readonly head: Buffer;
  readonly body: Buffer;
  /** True if the head contains a Date; otherwise it is added. */
  readonly isDated?: boolean;
}

/** Prepares a response that is sent often. */
export function prepareAnswer(answer: Answer): PreparedAnswer {
  const body = bytesOf(answer.body);
  const writer = new HeadWriter(1024);
  writer.statusLine(answer.status);
  writeHeaders(writer, answer.headers);
  const isBodiless = answer.status === 204 || answer.status === 304;
  if (!isBodiless) writer.contentLength(body.length);
  return {
    status: answer.status,
    head: Buffer.from(writer.view()),
    body: isBodiless ? NO_BYTES : Buffer.from(body),
  };
}

/** Writes a prepared response; returns long content like `writeAnswer`. */
export function writePrepared(
  writer: HeadWriter,
  date: HttpDate,
  answer: PreparedAnswer,
  context: AnswerContext,
): Buffer | null {
  writePreparedHead(writer, date, answer, context);
  return context.methodId === Method.HEAD ? null : writeContent(writer, answer.body);
}

function writePreparedHead(
  writer: HeadWriter,
  date: HttpDate,
  { head, isDated }: Pick<PreparedAnswer, "head" | "isDated">,
  context: AnswerContext,
): void {
  writer.raw(head);
  if (isDated !== true) writer.date(date, context.nowMs);
  writer.connection(context.keepAlive, context.minor);
  writer.endHead();
}

/** Writes the prepared head of a streamed response with a known length and returns its framing. */
export function writePreparedStart(
  writer: HeadWriter,
  date: HttpDate,
  head: Pick<PreparedAnswer, "status" | "head" | "isDated"> & { readonly contentLength: number },
  context: AnswerContext,
): FramingKind {
  writePreparedHead(writer, date, head, context);
  return chooseFraming(head.status, head.contentLength, context);
}

function writeContent(writer: HeadWriter, content: Buffer): Buffer | null {
  if (content.length > COPIED_BYTES_MAX) return content;
  writer.raw(content);
  return null;
}

function chooseFraming(
  status: number,
  contentLength: number | undefined,
  context: AnswerContext,
): FramingKind {
  if (status === 204 || status === 304 || context.methodId === Method.HEAD) return Framing.None;
  if (contentLength !== undefined) return contentLength === 0 ? Framing.None : Framing.Length;
  return context.minor === 1 ? Framing.Chunked : Framing.UntilClose;
}

function writeHeaders(writer: HeadWriter, headers: AnswerHeaders | undefined): void {
  if (headers === undefined) return;
  for (const [name, value] of headers) {
    if (OWN_FIELD.test(name)) throw new AnswerError(name);
    writer.field(name, value);
  }
}

function bytesOf(body: string | Uint8Array | undefined): Buffer {
  if (body === undefined) return NO_BYTES;
  return typeof body === "string" ? Buffer.from(body) : viewAsBuffer(body);
}

/** The same bytes as a `Buffer`. */
export function viewAsBuffer(bytes: Uint8Array): Buffer {
  if (Buffer.isBuffer(bytes)) return bytes;
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Number of bytes of an answer's content. */
export function countContent({ body }: Answer | PreparedAnswer): number {
  if (body === undefined) return 0;
  return typeof body === "string" ? Buffer.byteLength(body) : body.length;
}
