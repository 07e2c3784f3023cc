// The fields that a guest may set (RFC 9110 section 5, section 7.6.1).
import { GuestError } from "../errors.ts";
import type { FieldList } from "./field-list.ts";

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** Visible bytes, spaces, tabs and bytes above 127; no other controls. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const VALUE_BYTES_MAX = 16_384;
const NAME_BYTES_MAX = 256;
/** Lines of a message. */
const FIELDS_MAX = 128;
/** Framing and fields of one connection: a guest cannot change them. */
const UNCHANGEABLE: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Names that have been checked: guests use few names, again and again. */
const CHECKED = new Map<string, boolean>();
const CHECKED_MAX = 1_000;

/**
 * False for fields that belong to the framing of a message or to one connection, which guests cannot change. Throws `trapped`
 * for a name that no field can have.
 */
export function isChangeable(name: string): boolean {
  const known = CHECKED.get(name);
  if (known !== undefined) return known;
  if (name.length > NAME_BYTES_MAX || !TOKEN.test(name))
    throw new GuestError("trapped", "The guest passed a field name that is not a token.");
  if (CHECKED.size >= CHECKED_MAX) CHECKED.clear();
  const result = !UNCHANGEABLE.has(name.toLowerCase());
  CHECKED.set(name, result);
  return result;
}

/** Throws `trapped` for a value that no field can have, and for one more field than a message may have. */
export function checkFieldValue(value: string, fields: FieldList): void {
  if (value !== checkedValue) checkValue(value);
  if (fields.size >= FIELDS_MAX)
    throw new GuestError("trapped", `The guest set more than ${FIELDS_MAX} fields.`);
}

/** The value that has been checked last: most guests set one, which is often the same. */
let checkedValue = "";

function checkValue(value: string): void {
  if (value.length > VALUE_BYTES_MAX)
    throw new GuestError(
      "trapped",
      `The guest set a field value of ${value.length} bytes; the limit is ${VALUE_BYTES_MAX}.`,
    );
  if (!VALUE.test(value))
    throw new GuestError("trapped", "The guest set a field value with a control character.");
  checkedValue = value;
}

/** Throws `trapped` for a method that is not a token. */
export function checkMethod(method: string): void {
  if (method.length > 32 || !TOKEN.test(method))
    throw new GuestError("trapped", "The guest set a method that is not a token.");
}
