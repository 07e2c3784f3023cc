// Answers that are made here: framing chosen by method, status and version, from objects or prepared.
import { Method, type MethodId } from "../parse/methods.ts";
import { Framing, type FramingKind } from "../parse/status.ts";
import { HeadWriter } from "./head-writer.ts";
import type { HttpDate } from "./http-date.ts";

const NO_BYTES = Buffer.alloc(0);
/** A longer content is not copied behind its head: two buffers go to the socket in one call. */
const COPIED_BYTES_MAX = 32_768;
const TRANSFER_ENCODING_CHUNKED = Buffer.from("Transfer-Encoding: chunked\r\n");
/** The fields that the writer decides. CGI-like readers take `_` for `-`. */
const OWN_FIELD = /^(?:connection|content[-_]length|date|transfer[-_]encoding)$/i;

/** Fields of an answer: pairs, so that a name may come twice. Framing and Connection are not among them. */
export type AnswerHeaders = readonly (readonly [name: string, value: string])[];

/** An answer whose content is whole. */
export interface Answer {
  /** 200 to 599. */
  readonly status: number;
  readonly headers?: AnswerHeaders;
  /** Strings are sent as UTF-8. Bytes must not be changed afterwards. Default: none. */
  readonly body?: string | Uint8Array;
}

/** What of the exchange decides how an answer is framed. */
export interface AnswerContext {
  readonly methodId: MethodId;
  /** The client's minor version. */
  readonly minor: 0 | 1;
  /** Whether the connection stays open after the answer. */
  readonly keepAlive: boolean;
  readonly nowMs: number;
}

/** A caller set a field that the writer itself decides. */
export class AnswerError extends Error {
  readonly code = "framing_field_set";

  constructor(name: string) {
    super(`The field ${name} is set by the writer.`);
    this.name = "AnswerError";
  }
}

/**
 * Appends a whole answer, head and content, or gives a long content back: it is to be sent behind the
 * head. HEAD gets the head alone with the content's length; 204 and 304 get no content and no length
 * (RFC 9110 §8.6).
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
 * Appends the head of an answer whose content is streamed, and gives the framing to use: None (HEAD,
 * 204, 304), Length when `contentLength` is known, else Chunked, or UntilClose for HTTP/1.0: then the
 * connection must be closed behind the content, and the head says so.
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

/** An answer whose bytes were made once; only Date and Connection are added each time. */
export interface PreparedAnswer {
  readonly status: number;
  /** Status line and fields, the length included. */
  readonly head: Buffer;
  readonly body: Buffer;
}

/** Prepares an answer that is sent often. */
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

/** Appends a prepared answer; a long content is given back as by `writeAnswer`. */
export function writePrepared(
  writer: HeadWriter,
  date: HttpDate,
  answer: PreparedAnswer,
  context: AnswerContext,
): Buffer | null {
  writer.raw(answer.head);
  writer.date(date, context.nowMs);
  writer.connection(context.keepAlive, context.minor);
  writer.endHead();
  return context.methodId === Method.HEAD ? null : writeContent(writer, answer.body);
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
