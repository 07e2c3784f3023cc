// Rules for a complete request head: target and Host, Connection, framing of the content (RFC 9112 §3 to §6).
import { hasPort, isAuthority, isSameAuthority } from "./authority.ts";
import {
  checkTransferEncoding,
  expectsContinue,
  hasFramingAlias,
  Option,
  readConnection,
  readContentLength,
} from "./framing.ts";
import { Known } from "./known-fields.ts";
import { Method } from "./methods.ts";
import { type ParsedRequest, TargetForm } from "./parsed-request.ts";
import { type Refusal, refusals } from "./refusals.ts";
import { Framing } from "./status.ts";

/** Reads the fields that concern the connection into `head`. Returns the reason for a refusal, or null. */
export function judgeRequest(head: ParsedRequest): Refusal | null {
  return judgeTarget(head) ?? judgeConnection(head) ?? judgeFraming(head);
}

function judgeTarget(head: ParsedRequest): Refusal | null {
  const { fields, bytes } = head;
  if (head.targetForm === TargetForm.Asterisk && head.methodId !== Method.OPTIONS) {
    return refusals.bad_target;
  }
  if (head.authorityStart !== -1) {
    if (!isAuthority(bytes, head.authorityStart, head.authorityEnd)) return refusals.bad_host;
    const isConnect = head.targetForm === TargetForm.Authority;
    if (isConnect && !hasPort(bytes, head.authorityStart, head.authorityEnd)) {
      return refusals.bad_target;
    }
  }
  const host = fields.first(Known.Host);
  if (host === -1) return head.minor === 0 ? null : refusals.host_missing;
  if (fields.next(host) !== -1) return refusals.host_repeated;
  const start = fields.valueStart(host);
  const end = fields.valueEnd(host);
  if (!isAuthority(bytes, start, end)) return refusals.bad_host;
  if (
    head.authorityStart !== -1 &&
    !isSameAuthority(bytes, head.authorityStart, head.authorityEnd, start, end)
  ) {
    return refusals.host_mismatch;
  }
  return null;
}

function judgeConnection(head: ParsedRequest): Refusal | null {
  const { fields } = head;
  const options = fields.has(Known.Connection) ? readConnection(fields) : 0;
  if (typeof options !== "number") return options;
  head.keepAlive =
    (options & Option.Close) === 0 && (head.minor === 1 || (options & Option.KeepAlive) !== 0);
  head.upgrade = head.minor === 1 && (options & Option.Upgrade) !== 0 && fields.has(Known.Upgrade);
  return null;
}

function judgeFraming(head: ParsedRequest): Refusal | null {
  const { fields } = head;
  head.framing = Framing.None;
  head.contentLength = 0;
  head.expectContinue = false;
  if (hasFramingAlias(fields)) return refusals.alias_of_framing_field;
  if (fields.has(Known.TransferEncoding)) {
    if (head.minor === 0) return refusals.transfer_encoding_in_1_0;
    if (fields.has(Known.ContentLength)) return refusals.length_and_chunked;
    const refusal = checkTransferEncoding(fields);
    if (refusal !== null) return refusal;
    head.framing = Framing.Chunked;
  } else if (fields.has(Known.ContentLength)) {
    const length = readContentLength(fields);
    if (length === -3) return refusals.content_length_repeated;
    if (length < 0) return refusals.bad_content_length;
    if (length > 0) head.framing = Framing.Length;
    head.contentLength = length;
  }
  // RFC 9110 §10.1.1: an expectation in HTTP/1.0 is ignored.
  if (head.minor === 1 && fields.has(Known.Expect) && expectsContinue(fields)) {
    head.expectContinue = head.framing !== Framing.None || fields.has(Known.ContentLength);
  }
  return null;
}
