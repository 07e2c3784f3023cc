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
  const before = Buffer.from(head.bytes.subarray(head.headStart, head.headEnd));
  const { framing, contentLength, keepAlive, expectContinue, upgrade, methodId } = head;
  let text = `${method} ${target} HTTP/1.${head.minor}\r\n`;
  for (const [name, value] of fields) text += `${name}: ${value}\r\n`;
  const refusal = read(head, Buffer.from(`${text}\r\n`, "latin1")) ?? judge();
  // The connection may have been told to close since.
  head.keepAlive = keepAlive;
  if (refusal === undefined) return;
  read(head, before);
  head.keepAlive = keepAlive;
  throw new HeadChangeError(refusal);

  function judge(): string | undefined {
    // A line break would be one more field.
    if (head.fields.count !== fields.length) return "bad_field_value";
    // With a space in one of them, the parts are of other lengths.
    const methodLength = head.methodEnd - head.headStart;
    const targetLength = head.targetEnd - head.targetStart;
    if (methodLength !== method.length || targetLength !== target.length) return "bad_request_line";
    if (head.methodId !== methodId && (FIXED.has(methodId) || FIXED.has(head.methodId)))
      return "method_changed";
    const isSame =
      head.framing === framing &&
      head.contentLength === contentLength &&
      head.expectContinue === expectContinue &&
      head.upgrade === upgrade;
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
