// Pagination by opaque cursors.
import { z } from "zod";
import { createValidationError } from "./request-input.ts";

const CURSOR_CHARACTERS_MAX = 1_024;

/** `cursor` of a query. */
export const cursorQuery = z
  .string()
  .max(CURSOR_CHARACTERS_MAX)
  .optional()
  .describe("`next_cursor` of the previous page.");

/** Query of a paginated list: `limit` 1 to 200 (default 50), and the `cursor` of the previous page. */
export const pageQuery = z.object({
  limit: z
    .string()
    .regex(/^\d{1,3}$/, "a whole number from 1 to 200")
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 200, "a whole number from 1 to 200")
    .default(50)
    .describe("Number of items on a page, 1 to 200."),
  cursor: cursorQuery,
});

/** `next_cursor` of the answer to a request for a page. */
export const nextCursor = z
  .string()
  .nullable()
  .describe("`cursor` of the next page; null on the last one.");

/** A position in a log as the key of a cursor: `LinePosition` of the module `files`, which threads load without schemas. */
export const linePosition = z.object({ file: z.number(), offset: z.number().min(0) });

/** A requested page, as parsed by `pageQuery`. */
export interface PageRequest {
  limit: number;
  cursor?: string | undefined;
}

/** A page of a list; the last one has no cursor. */
export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

/** A paginated list, ordered by one key of its items. */
export interface PagedList<T, Key extends string | number> {
  /** Schema of keys; other values in a cursor are a client error (400). */
  key: z.ZodType<Key>;
  /** Returns at most `limit` items after `after`, or from the start. */
  read: (limit: number, after: Key | undefined) => Promise<readonly T[]>;
  keyOf: (item: T) => Key;
}

/** Reads a page of a list. It requests one item more than fits, to detect whether more follow. */
export async function readPage<T, Key extends string | number>(
  { limit, cursor }: PageRequest,
  { key, keyOf, read }: PagedList<T, Key>,
): Promise<Page<T>> {
  const after = cursor === undefined ? undefined : decodeCursor(cursor, key);
  const rows = await read(limit + 1, after);
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { items, next_cursor: more ? encodeCursor(keyOf(last)) : null };
}

/** The cursor after a key: JSON in base64url, opaque, but not secret. */
export function encodeCursor(key: unknown): string {
  return Buffer.from(JSON.stringify([key])).toString("base64url");
}

/** The key of a cursor. Throws `validation_failed` if it is not one of this list. */
export function decodeCursor<Key>(cursor: string, key: z.ZodType<Key>): Key {
  try {
    return z.tuple([key]).parse(JSON.parse(Buffer.from(cursor, "base64url").toString()))[0];
  } catch {
    throw createValidationError([{ in: "query", path: "cursor", message: "invalid cursor" }]);
  }
}
