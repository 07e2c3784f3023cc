// Names of topics and tenants: validation, stored names, Kafka names.
import { PlatformError } from "@platform/kernel/errors";

/** Longest name in bytes of UTF-8, as in Kafka; with the tenant before it the log allows 1 024. */
export const TOPIC_NAME_BYTES_MAX = 249;
/** Longest tenant in bytes of UTF-8. */
const TENANT_BYTES_MAX = 128;

// Control characters, separators of tenants and wildcards, and characters that need quoting.
// oxlint-disable-next-line no-control-regex -- naming the control characters is the point
const FOREIGN = /[\u0000-\u0020\u007f:*#+/\\"$]/;

/** A tenant: the text before `:` in stored names; "" is the operator's, whose names have no prefix. */
export type Tenant = string;

/**
 * Validates a topic name: levels separated by `.`, which may be empty as in Kafka; not just `.` or `..`; no `:`, wildcard, `/`, `$`, blank or control
 * character, no leading `__` (reserved for internal topics). Returns the reason, or `undefined` if the name is valid.
 */
export function explainTopicName(name: string): string | undefined {
  if (name === "" || name === "." || name === "..") return "a topic needs a name";
  if (Buffer.byteLength(name) > TOPIC_NAME_BYTES_MAX)
    return `a topic's name has ${TOPIC_NAME_BYTES_MAX} bytes at most`;
  if (name.startsWith("__")) return "names that begin with __ are the broker's own";
  if (FOREIGN.test(name))
    return "a topic's name may not hold blanks, control characters or any of : * # + / \\ \" $";
  return name.isWellFormed() ? undefined : "a topic's name must be valid text";
}

/** Like `explainTopicName`, but throws `validation_failed`. */
export function checkTopicName(name: string): void {
  const reason = explainTopicName(name);
  if (reason !== undefined) throw new PlatformError("validation_failed", `${reason}.`);
}

/** The valid form of a tenant name, for error messages. */
export const TENANT_FORM = `1 to ${TENANT_BYTES_MAX} of A-Z a-z 0-9 . _ -, without __ in front`;

/**
 * True if a text is a valid tenant. As for topics, names that begin with `__` are reserved: in stored names the tenant
 * comes first.
 */
export function isTenant(text: string): boolean {
  const isShort = Buffer.byteLength(text) <= TENANT_BYTES_MAX;
  return isShort && /^[A-Za-z0-9._-]+$/.test(text) && !text.startsWith("__");
}

/** The stored name of a tenant's topic. */
export function toStoredName(tenant: Tenant, name: string): string {
  return tenant === "" ? name : `${tenant}:${name}`;
}

/** Splits a stored name. */
export function splitStoredName(stored: string): { tenant: Tenant; name: string } {
  const colon = stored.indexOf(":");
  return { tenant: stored.slice(0, Math.max(0, colon)), name: stored.slice(colon + 1) };
}

/** True if a stored name is that of an internal topic. */
export function isInternal(stored: string): boolean {
  return stored.startsWith("__");
}

/*
 * Kafka allows letters, digits, `.`, `_` and `-`. Every other byte becomes `_xHH`, and an underscore that would read as
 * the start of such an escape becomes `_x5F`, so that the mapping is reversible.
 */

/** A topic's name for Kafka clients. */
export function toKafkaName(name: string): string {
  let text = "";
  for (const byte of Buffer.from(name)) {
    const character = String.fromCharCode(byte);
    text += /[A-Za-z0-9._-]/.test(character) ? character : mark(byte);
  }
  // Existing texts that look like escapes must differ from the escapes just made.
  return name.includes("_x") ? escapeLiteralMarks(name) : text;
}

/** Reverses `toKafkaName`. */
export function fromKafkaName(text: string): string {
  if (!text.includes("_x")) return text;
  const bytes: number[] = [];
  for (let at = 0; at < text.length;) {
    const found = /^_x([0-9A-F]{2})/.exec(text.slice(at, at + 4));
    bytes.push(found === null ? text.charCodeAt(at) : Number.parseInt(found[1]!, 16));
    at += found === null ? 1 : 4;
  }
  return Buffer.from(bytes).toString("utf8");
}

function escapeLiteralMarks(name: string): string {
  const bytes = Buffer.from(name);
  let text = "";
  for (const [at, byte] of bytes.entries()) {
    const character = String.fromCharCode(byte);
    const looksLikeMark = /^_x[0-9A-F]{2}/.test(bytes.toString("latin1", at, at + 4));
    text += /[A-Za-z0-9._-]/.test(character) && !looksLikeMark ? character : mark(byte);
  }
  return text;
}

function mark(byte: number): string {
  return `_x${byte.toString(16).toUpperCase().padStart(2, "0")}`;
}
