// Paging by cursor: opaque marks that say after which item the next page begins.
import { z } from "zod";
import { createValidationError } from "./request-input.ts";

const CURSOR_CHARACTERS_MAX = 1_024;

/** The query of a paged list: `limit` 1 to 200 (default 50) and the `cursor` that the page before gave. */
export const pageQuery = z.object({
  limit: z
    .string()
    .regex(/^\d{1,3}$/, "a whole number from 1 to 200")
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 200, "a whole number from 1 to 200")
    .default(50)
    .describe("Items on a page, 1 to 200."),
  cursor: z
    .string()
    .max(CURSOR_CHARACTERS_MAX)
    .optional()
    .describe("`next_cursor` of the page before."),
});

/** A page that was asked for, as `pageQuery` reads it. */
export interface PageRequest {
  limit: number;
  cursor?: string | undefined;
}

/** A page of a list; without a cursor it is the last one. */
export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

/** A list that is read page by page, in the order of one key of its items. */
export interface PagedList<T, Key extends string | number> {
  /** What a key may be; anything else in a cursor is the caller's 400. */
  key: z.ZodType<Key>;
  /** At most `limit` items from behind `after`, from the first one without it. */
  read: (limit: number, after: Key | undefined) => Promise<readonly T[]>;
  keyOf: (item: T) => Key;
}

/** Reads one page of a list. One item more than the page holds is read: it only shows that there are more. */
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

// JSON in base64url: no secret, but nothing to write by hand either.
function encodeCursor(key: string | number): string {
  return Buffer.from(JSON.stringify([key])).toString("base64url");
}

function decodeCursor<Key>(cursor: string, key: z.ZodType<Key>): Key {
  try {
    return z.tuple([key]).parse(JSON.parse(Buffer.from(cursor, "base64url").toString()))[0];
  } catch {
    throw createValidationError([
      { in: "query", path: "cursor", message: "not a cursor of this list" },
    ]);
  }
}
