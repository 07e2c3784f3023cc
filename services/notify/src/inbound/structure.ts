// Bounds on the structure of received messages, checked without parsing them.
import { splitMessage } from "../message/header-fields.ts";
import { SmtpError } from "./smtp-error.ts";

const RECEIVED_FIELDS_MAX = 50;
const HEADER_BYTES_MAX = 256 * 1024;
const MULTIPARTS_MAX = 100;
const DELIMITERS_MAX = 10_000;
// Media types are case-insensitive (RFC 2045 section 5.1).
const NESTED_TYPE = /multipart\/|message\/(?:rfc822|global)/gi;

/** Throws SmtpError 554 for mail loops, and for headers and MIME structures that are too large to be parsed safely. */
export function checkStructure(content: Buffer): void {
  const { fields, body } = splitMessage(content);
  if (content.length - body.length > HEADER_BYTES_MAX) {
    throw new SmtpError(554, `5.6.0 The header exceeds ${HEADER_BYTES_MAX} bytes`);
  }
  if (fields.filter(({ name }) => name === "received").length > RECEIVED_FIELDS_MAX) {
    throw new SmtpError(554, `5.4.6 Mail loop: more than ${RECEIVED_FIELDS_MAX} Received fields`);
  }
  // Nested parts are multiparts or messages, and each part starts with a delimiter line.
  const nested = countNested(content, MULTIPARTS_MAX);
  const parts = countOccurrences(content, "\r\n--", DELIMITERS_MAX);
  if (nested <= MULTIPARTS_MAX && parts <= DELIMITERS_MAX) return;
  throw new SmtpError(554, "5.6.0 The message has too many or too deeply nested MIME parts");
}

// Counts up to one more than `max`.
function countNested(content: Buffer, max: number): number {
  let count = 0;
  for (const _type of content.toString("latin1").matchAll(NESTED_TYPE)) {
    count += 1;
    if (count > max) break;
  }
  return count;
}

// Counts up to one more than `max`.
function countOccurrences(content: Buffer, text: string, max: number): number {
  let count = 0;
  for (let at = content.indexOf(text); at !== -1; at = content.indexOf(text, at + text.length)) {
    count += 1;
    if (count > max) break;
  }
  return count;
}
