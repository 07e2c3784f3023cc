// Schemas of values of rules; their error messages name the allowed values.
import { z } from "zod";

/** One day in ms: the maximum of timeouts. */
export const DAY_MS = 86_400_000;
/** One TiB: the maximum of sizes. */
export const BYTES_MAX = 1024 ** 4;

/** An optional field; 0, "" and [] mean that it is absent. */
export function unset<T extends z.ZodType>(schema: T) {
  return z.preprocess(dropUnset, schema.optional());
}

/** A field with a default; 0, "" and [] mean that it is absent. */
export function unsetOr<T extends z.ZodType>(schema: T) {
  return z.preprocess(dropUnset, schema);
}

/** A boolean field; absent means false. */
export function yesNo() {
  return unset(z.boolean());
}

/** An integer between two bounds, inclusive. */
export function wholeNumber(min: number, max: number) {
  return z.int().min(min).max(max);
}

/** A non-empty text. */
export function text(charsMax = 4096) {
  return z.string().min(1).max(charsMax);
}

/**
 * Normalizes a prefix like request paths: decodes escapes of unreserved characters, converts others to upper case (RFC
 * 3986 section 6.2.2).
 */
export function normalizePrefix(prefix: string): string {
  return prefix.replace(/%[0-9a-fA-F]{2}/g, (escape) => {
    const character = String.fromCharCode(Number.parseInt(escape.slice(1), 16));
    return /[A-Za-z0-9._~-]/.test(character) ? character : escape.toUpperCase();
  });
}

/** The name of a header field. */
export function fieldName() {
  return z
    .string()
    .max(128)
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { error: "expected the name of a header field" });
}

/** Undefined in place of 0, "" and []. */
export function dropUnset(value: unknown): unknown {
  if (value === 0 || value === "" || (Array.isArray(value) && value.length === 0)) return undefined;
  return value;
}
