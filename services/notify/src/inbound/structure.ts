// Bounds on the structure of received messages, checked without parsing them.
import { splitMessage } from "../message/header-fields.ts";
import { listParts } from "../message/mime-tree.ts";
import { SmtpError } from "./smtp-error.ts";

const RECEIVED_FIELDS_MAX = 50;
const HEADER_BYTES_MAX = 256 * 1024;
const BOUNDS = { partsMax: 10_000, containersMax: 100 };

/**
 * Throws SmtpError 554 for mail loops, and for headers and MIME structures that are too large to be parsed safely.
 * Only declared boundaries and the headers of parts count, never text.
 */
export function checkStructure(content: Buffer): void {
  const { fields, body } = splitMessage(content);
  if (content.length - body.length > HEADER_BYTES_MAX) {
    throw new SmtpError(554, `5.6.0 The header exceeds ${HEADER_BYTES_MAX} bytes`);
  }
  if (fields.filter(({ name }) => name === "received").length > RECEIVED_FIELDS_MAX) {
    throw new SmtpError(554, `5.4.6 Mail loop: more than ${RECEIVED_FIELDS_MAX} Received fields`);
  }
  if (listParts(content, BOUNDS) !== undefined) return;
  throw new SmtpError(554, "5.6.0 The message has too many or too deeply nested MIME parts");
}
