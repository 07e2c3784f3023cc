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

/** A cursor for the position `key` (the sort key of the page's last item); JSON in base64url, no secret. */
export function encodeCursor(key: readonly (string | number)[]): string {
  return Buffer.from(JSON.stringify(key)).toString("base64url");
}

/** Reads a cursor back by its schema; anything else is the caller's 400. */
export function decodeCursor<T>(cursor: string, schema: z.ZodType<T>): T {
  try {
    return schema.parse(JSON.parse(Buffer.from(cursor, "base64url").toString()));
  } catch {
    throw createValidationError([
      { in: "query", path: "cursor", message: "not a cursor of this list" },
    ]);
  }
}

/**
 * One page from `rows`, which were read with a limit one higher than the page's: the extra row only shows that there are
 * more.
 */
export function buildPage<T>(
  rows: readonly T[],
  limit: number,
  keyOf: (item: T) => readonly (string | number)[],
): { items: T[]; next_cursor: string | null } {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { items, next_cursor: more ? encodeCursor(keyOf(last)) : null };
}
