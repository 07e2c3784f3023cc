// Replaces the head of a request that has been parsed.
import type { HeadChange } from "../contract/exchange.ts";
import { Method, Parse, type RequestParser } from "../parse/index.ts";

/** Thrown for a changed head that cannot stand for the client's request. The request is as before. */
export class HeadChangeError extends Error {
  override readonly name = "HeadChangeError";
  /** Code of the parser's refusal, `framing_changed` or `method_changed`. */
  readonly code: string;

  constructor(code: string) {
    super(`The changed head is not valid: ${code}`);
    this.code = code;
  }
}

/** Methods whose responses are framed differently: neither may become another method, nor the reverse. */
const FIXED: ReadonlySet<number> = new Set([Method.HEAD, Method.CONNECT]);

/** See `Exchange.replaceHead`. The new head passes the checks of every received one. */
export function changeHead(head: RequestParser, { method, target, fields }: HeadChange): void {
  let text = `${method} ${target} HTTP/1.${head.minor}\r\n`;
  for (const [name, value] of fields) text += `${name}: ${value}\r\n`;
  const kept = keep(head);
  readChanged(head, Buffer.from(`${text}\r\n`, "latin1"), kept, {
    count: fields.length,
    methodLength: method.length,
    targetLength: target.length,
  });
}

/** See `Exchange.appendFields`. */
export function appendToHead(
  head: RequestParser,
  fields: readonly (readonly [name: string, value: string])[],
): void {
  const { bytes, headStart, headEnd } = head;
  const { count } = head.fields;
  if (head.append(fields)) return;
  // Only the place of the head is another one, and its end has been written over.
  const kept: Kept = { ...keep(head), bytes, start: headStart, end: headEnd };
  let lines = "";
  for (const [name, value] of fields) lines += `${name}: ${value}\r\n`;
  readChanged(head, Buffer.from(`${copyLines(kept)}${lines}\r\n`, "latin1"), kept, {
    count: count + fields.length,
    methodLength: head.methodEnd - head.headStart,
    targetLength: head.targetEnd - head.targetStart,
  });
}

/** A head before its change. */
type Kept = ReturnType<typeof keep>;

function keep(head: RequestParser) {
  const { bytes, headStart: start, headEnd: end, methodId, keepAlive } = head;
  const { framing, contentLength, expectContinue, upgrade } = head;
  return {
    bytes,
    start,
    end,
    methodId,
    keepAlive,
    framing,
    contentLength,
    expectContinue,
    upgrade,
  };
}

/** The lines of a kept head without its end, in place of which others may have been written. */
function copyLines({ bytes, start, end }: Kept): string {
  return bytes.toString("latin1", start, end - 2);
}

/** Reads a changed head. Throws HeadChangeError, with the head as it was, if it cannot stand for it. */
function readChanged(
  head: RequestParser,
  bytes: Buffer,
  kept: Kept,
  expected: { count: number; methodLength: number; targetLength: number },
): void {
  const refusal = read(head, bytes) ?? judge();
  // The connection may have been told to close since.
  head.keepAlive = kept.keepAlive;
  if (refusal === undefined) return;
  read(head, Buffer.from(`${copyLines(kept)}\r\n`, "latin1"));
  head.keepAlive = kept.keepAlive;
  throw new HeadChangeError(refusal);

  function judge(): string | undefined {
    // A line break would be one more field.
    if (head.fields.count !== expected.count) return "bad_field_value";
    // With a space in one of them, the parts are of other lengths.
    const methodLength = head.methodEnd - head.headStart;
    const targetLength = head.targetEnd - head.targetStart;
    if (methodLength !== expected.methodLength || targetLength !== expected.targetLength)
      return "bad_request_line";
    if (head.methodId !== kept.methodId && (FIXED.has(kept.methodId) || FIXED.has(head.methodId)))
      return "method_changed";
    const isSame =
      head.framing === kept.framing &&
      head.contentLength === kept.contentLength &&
      head.expectContinue === kept.expectContinue &&
      head.upgrade === kept.upgrade;
    return isSame ? undefined : "framing_changed";
  }
}

function read(head: RequestParser, bytes: Buffer): string | undefined {
  head.reset();
  switch (head.execute(bytes, 0, bytes.length)) {
    case Parse.Complete:
      return head.next === bytes.length ? undefined : "bad_field_value";
    case Parse.Refused:
      return head.refusal!.code;
    default:
      return "bad_field_value";
  }
}
