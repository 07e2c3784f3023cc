// The bearer token of a request (RFC 6750 section 2.1).
import { Known, type FieldBlock } from "@platform/http1";

const SCHEME = "bearer ";

/** The token of the Authorization field; "" if the field is absent, repeated, or has another scheme. */
export function readBearerToken(fields: FieldBlock): string {
  const line = fields.first(Known.Authorization);
  if (line === -1 || fields.next(line) !== -1) return "";
  const value = fields.bytes.toString("latin1", fields.valueStart(line), fields.valueEnd(line));
  if (value.slice(0, SCHEME.length).toLowerCase() !== SCHEME) return "";
  return value.slice(SCHEME.length).trim();
}
