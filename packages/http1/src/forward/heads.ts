// Writes request heads for upstreams and response heads for clients.
import { Framing, Known, type RequestParser, type ResponseParser } from "../parse/index.ts";
import { type FieldCuts, HeadWriteError, type HeadWriter } from "../write/index.ts";
import type { CompiledPlan } from "./plan.ts";

const SLASH = 0x2f;
const ASTERISK = 0x2a;
/** Printable bytes without space and `#`. */
const QUERY = /^[!"$-~\u0080-\u00ff]*$/;
const LINE_END = Buffer.from(" HTTP/1.1\r\n");
const CONNECTION_UPGRADE = Buffer.from("Connection: Upgrade\r\n");
/** The framing of a body in chunks. */
export const TRANSFER_ENCODING_CHUNKED = Buffer.from("Transfer-Encoding: chunked\r\n");
const TE_TRAILERS = Buffer.from("TE: trailers\r\nConnection: TE\r\n");

/** Writes the request line: strips and prepends according to the plan; null keeps path or query. */
export function writeRequestLine(
  writer: HeadWriter,
  head: RequestParser,
  plan: CompiledPlan,
  path: string | null,
  query: string | null,
): void {
  const { prependPath, stripPathBytes } = plan;
  if (prependPath.length === 0 && stripPathBytes === 0 && query === null) {
    writer.requestLine(head, path);
    return;
  }
  const bytes = path === null ? head.bytes : Buffer.from(path, "latin1");
  const end = path === null ? head.pathEnd : bytes.length;
  const start = Math.min(end, (path === null ? head.pathStart : 0) + stripPathBytes);
  writer.range(head.bytes, head.headStart, head.methodEnd + 1);
  if (path === null && head.bytes[head.targetStart] === ASTERISK) writer.byte(ASTERISK);
  else {
    writer.raw(prependPath);
    if (bytes[start] !== SLASH || start === end) {
      if (prependPath.length === 0 || start < end) writer.byte(SLASH);
    }
    writer.range(bytes, start, end);
  }
  writeQuery(writer, head, query);
  writer.raw(LINE_END);
}

function writeQuery(writer: HeadWriter, head: RequestParser, query: string | null): void {
  if (query === null) {
    if (head.queryStart !== -1) writer.range(head.bytes, head.queryStart - 1, head.targetEnd);
    return;
  }
  if (!QUERY.test(query)) throw new HeadWriteError("bad_path");
  if (query !== "") writer.raw(Buffer.from(`?${query}`, "latin1"));
}

/** The form in which a request and its body are sent. */
interface RequestForm {
  readonly isUpgrade: boolean;
  /** A part of the body was read before. */
  readonly isBegun: boolean;
  /** Size of a collected body, or -1 if the client's framing is kept. */
  readonly collectedBytes: number;
}

/** Writes the fields of a request without the empty line. */
export function writeRequestFields(
  writer: HeadWriter,
  head: RequestParser,
  plan: CompiledPlan,
  { isUpgrade, isBegun, collectedBytes }: RequestForm,
): void {
  const { fields } = head;
  if (plan.hostLine !== null) writer.raw(plan.hostLine);
  else if (!fields.has(Known.Host)) writer.raw(plan.hostFallbackLine);
  if (collectedBytes !== -1) {
    writer.copyFields(fields, plan.collectedCuts);
    writer.contentLength(collectedBytes);
  } else {
    const streamedCuts = isBegun ? plan.collectedCuts : plan.requestCuts;
    writer.copyFields(fields, isUpgrade ? plan.upgradeCuts : streamedCuts);
    if (head.framing === Framing.Chunked) writer.raw(TRANSFER_ENCODING_CHUNKED);
    else if (fields.has(Known.ContentLength)) writer.contentLength(head.contentLength);
  }
  if (isUpgrade) writer.raw(CONNECTION_UPGRADE);
  else if (fields.has(Known.Te) && acceptsTrailers(head)) writer.raw(TE_TRAILERS);
  if (plan.requestAdditions.length > 0) writer.raw(plan.requestAdditions);
}

/** Writes the status line and fields of a response without Connection, added chunked coding and the empty line. */
export function writeResponseFields(
  writer: HeadWriter,
  head: ResponseParser,
  plan: CompiledPlan,
  isUnchunked: boolean,
): void {
  writer.statusLineOf(head);
  writer.copyFields(head.fields, chooseResponseCuts(head, plan, isUnchunked));
  if (!isUnchunked && head.fields.has(Known.TransferEncoding))
    writer.raw(TRANSFER_ENCODING_CHUNKED);
  if (head.status === 426 && head.fields.has(Known.Upgrade)) writer.raw(CONNECTION_UPGRADE);
  if (plan.responseAdditions.length > 0) writer.raw(plan.responseAdditions);
}

/** Writes a whole 101 or other informational head. */
export function writeInformationalHead(
  writer: HeadWriter,
  head: ResponseParser,
  plan: CompiledPlan,
): void {
  writer.statusLineOf(head);
  writer.copyFields(head.fields, head.status === 101 ? plan.switchCuts : plan.noContentCuts);
  if (head.status === 101) writer.raw(CONNECTION_UPGRADE);
}

/**
 * True if the upgrade of a request may be forwarded. `h2c` may not, because the following HTTP/2 would not be
 * validated.
 */
export function mayUpgrade(head: RequestParser): boolean {
  if (!head.upgrade) return false;
  const protocols = head.fields.get(Known.Upgrade) ?? "";
  return !protocols
    .toLowerCase()
    .split(",")
    .some((protocol) => protocol.trim().startsWith("h2"));
}

function chooseResponseCuts(
  { status }: ResponseParser,
  plan: CompiledPlan,
  isUnchunked: boolean,
): FieldCuts {
  if (isUnchunked) return plan.unchunkedCuts;
  if (status === 204) return plan.noContentCuts;
  return status === 426 ? plan.switchCuts : plan.responseCuts;
}

function acceptsTrailers(head: RequestParser): boolean {
  const te = head.fields.get(Known.Te) ?? "";
  return te
    .toLowerCase()
    .split(",")
    .some((coding) => coding.trim() === "trailers");
}
