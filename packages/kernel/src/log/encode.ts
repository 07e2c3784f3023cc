// Encodes any value as bounded, redacted JSON.
import { REDACTED, isSecretName, redactText } from "./redact.ts";

const DEPTH_MAX = 5;
const MEMBERS_MAX = 64;
const TEXT_CHARACTERS_MAX = 4096;

/** Encodes a field's value as JSON. Never throws; depth, members and text are bounded. */
export function encodeValue(name: string, value: unknown): string {
  return encode(name, value, 0);
}

/** Texts that need no escapes and cannot contain credentials, as they have neither white space nor `@`. */
const PLAIN = /^[!#-?A-[\]-~]*$/;

/** Encodes a string as JSON, redacted and truncated. */
export function encodeText(text: string): string {
  if (text.length <= TEXT_CHARACTERS_MAX && PLAIN.test(text)) return `"${text}"`;
  const cut = text.length > TEXT_CHARACTERS_MAX ? `${text.slice(0, TEXT_CHARACTERS_MAX)}…` : text;
  return JSON.stringify(redactText(cut));
}

function encode(name: string, value: unknown, depth: number): string {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value) ? String(value) : "null";
    case "boolean":
      return value ? "true" : "false";
    case "undefined":
    case "function":
    case "symbol":
      return "null";
    case "bigint":
      return `"${value}"`;
    case "string":
      return isSecretName(name) ? `"${REDACTED}"` : encodeText(value);
    case "object":
      if (value === null) return "null";
      if (isSecretName(name)) return `"${REDACTED}"`;
      return depth >= DEPTH_MAX ? '"[too deep]"' : encodeReadable(name, value, depth);
    default:
      return "null";
  }
}

// A getter or a proxy that throws must not break the caller of the logger.
function encodeReadable(name: string, value: object, depth: number): string {
  try {
    return encodeObject(name, value, depth);
  } catch {
    return '"[unreadable]"';
  }
}

function encodeObject(name: string, value: object, depth: number): string {
  if (value instanceof Error) return encodeError(value, depth);
  if (value instanceof Date)
    return Number.isNaN(value.getTime()) ? "null" : `"${value.toISOString()}"`;
  if (value instanceof URL) return encodeText(value.href);
  if (ArrayBuffer.isView(value)) return `"[${value.byteLength} bytes]"`;
  if (Array.isArray(value)) {
    const parts = value.slice(0, MEMBERS_MAX).map((item) => encode(name, item, depth + 1));
    if (value.length > MEMBERS_MAX) parts.push(`"… ${value.length - MEMBERS_MAX} more"`);
    return `[${parts.join(",")}]`;
  }
  const source = value instanceof Map ? mapEntries(value) : Object.entries(value);
  const parts: string[] = [];
  for (const [key, item] of source.slice(0, MEMBERS_MAX)) {
    if (item !== undefined) parts.push(`${encodeText(key)}:${encode(key, item, depth + 1)}`);
  }
  if (source.length > MEMBERS_MAX) parts.push(`"…":"${source.length - MEMBERS_MAX} more"`);
  return `{${parts.join(",")}}`;
}

// Any value can be assigned to the properties of an error.
function encodeError(error: Error, depth: number): string {
  const member = (name: string, value: unknown): string =>
    `"${name}":${encode(name, value, depth + 1)}`;
  const parts = [member("name", error.name), member("message", error.message)];
  const code = "code" in error ? error.code : undefined;
  if (typeof code === "string" || typeof code === "number") {
    parts.push(`"code":${encodeText(String(code))}`);
  }
  if (error.stack !== undefined) parts.push(member("stack", error.stack));
  if (error.cause !== undefined) parts.push(member("cause", error.cause));
  return `{${parts.join(",")}}`;
}

function mapEntries(map: Map<unknown, unknown>): [string, unknown][] {
  return [...map].map(([key, item]) => [String(key), item]);
}
