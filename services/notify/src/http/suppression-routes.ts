// The suppression list: read, add, remove, import and export as CSV.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import {
  bytes,
  createValidationError,
  defineRoute,
  nextCursor,
  pageQuery,
  readPage,
  type ApiRoute,
  NO_BODY,
} from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import { parseMailbox } from "../address/mailbox.ts";
import {
  SUPPRESSION_REASONS,
  type SuppressionReason,
  type SuppressionRow,
} from "../database/suppression.ts";
import { formatCsv, parseCsv } from "../suppression/csv.ts";
import type { NewSuppression, Suppressions } from "../suppression/suppressions.ts";
import { requireManager } from "./access.ts";

const reason = z.enum(SUPPRESSION_REASONS);
const IMPORT_BYTES_MAX = 16 * 1024 * 1024;
const EXPORT_PAGE = 1_000;

const entryBody = z.strictObject({
  email: z.string().min(3).max(320),
  reason: reason.default("manual"),
});

const entryAnswer = z.object({
  email: z.string(),
  reason,
  suppressed_at: z.string(),
  detail: z.string().optional().describe("The reply or report that caused it"),
  message_id: z.string().optional(),
});

export function createSuppressionRoutes(suppressions: Suppressions, clock: Clock): ApiRoute[] {
  const operation = { tag: "Suppression", access: requireManager } as const;
  return [
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/suppression",
      summary: "List suppressed addresses",
      query: pageQuery.extend({ reason: reason.optional() }),
      answer: z.object({ addresses: z.array(entryAnswer), next_cursor: nextCursor }),
      handle: async ({ query }) => {
        const page = await readPage(query, {
          key: z.string().max(320),
          read: (limit, after) => suppressions.list({ reason: query.reason, limit, after }),
          keyOf: ({ address }) => address,
        });
        return { addresses: page.items.map(toEntry), next_cursor: page.next_cursor };
      },
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/suppression",
      summary: "Suppress an address",
      body: entryBody,
      status: 201,
      answer: entryAnswer,
      handle: async ({ body }) => {
        const address = readAddress(body.email, "email");
        await suppressions.add([{ address, reason: body.reason }], clock.now());
        return toEntry((await suppressions.get(address))!);
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/suppression/export",
      summary: "Export all entries as CSV",
      answer: bytes("text/csv"),
      handle: async () =>
        new Response(streamCsv(suppressions), {
          headers: {
            "Content-Type": "text/csv; charset=utf-8",
            "Content-Disposition": 'attachment; filename="suppression.csv"',
          },
        }),
    }),
    defineRoute({
      ...operation,
      method: "POST",
      path: "/api/v1/suppression/import",
      summary: "Import entries from CSV",
      description:
        "Columns: `email` and, optionally, `reason`; others are ignored. All lines are imported, or none.",
      bodyKind: "bytes",
      bodyBytesMax: IMPORT_BYTES_MAX,
      answer: z.object({ status: z.literal("imported"), count: z.int() }),
      handle: async ({ body }) => {
        const entries = readCsv(Buffer.from(body).toString());
        await suppressions.add(entries, clock.now());
        return { status: "imported" as const, count: entries.length };
      },
    }),
    defineRoute({
      ...operation,
      method: "GET",
      path: "/api/v1/suppression/{email}",
      summary: "Entry of an address",
      answer: entryAnswer,
      handle: async ({ params }) => {
        const row = await suppressions.get(readAddress(decode(params["email"]!), "email"));
        if (row === undefined) throw missing();
        return toEntry(row);
      },
    }),
    defineRoute({
      ...operation,
      method: "DELETE",
      path: "/api/v1/suppression/{email}",
      summary: "Remove an address from the list",
      answer: NO_BODY,
      handle: async ({ params }) => {
        const removed = await suppressions.remove(readAddress(decode(params["email"]!), "email"));
        if (!removed) throw missing();
        return undefined;
      },
    }),
  ];
}

function toEntry({ address, reason: found, suppressed_at, detail, message_id }: SuppressionRow) {
  return {
    email: address,
    reason: found,
    suppressed_at: new Date(suppressed_at).toISOString(),
    ...(detail === null ? {} : { detail }),
    ...(message_id === null ? {} : { message_id }),
  };
}

function readAddress(text: string, path: string): string {
  const result = parseMailbox(text);
  if (result.ok) return result.mailbox.address;
  throw createValidationError([{ in: "body", path, message: result.reason }]);
}

function readCsv(text: string): NewSuppression[] {
  const [head, ...lines] = parseRows(text);
  const columns = (head ?? []).map((name) => name.trim().toLowerCase());
  const emailAt = columns.indexOf("email");
  const reasonAt = columns.indexOf("reason");
  const fail = (path: string, message: string): never => {
    throw createValidationError([{ in: "body", path, message }]);
  };
  if (emailAt === -1) fail("line 1", "the first line must name the column email");
  return lines.map((cells, index) => {
    const place = `line ${index + 2}`;
    const address = readAddress((cells[emailAt] ?? "").trim(), place);
    const found = reasonAt === -1 ? "" : (cells[reasonAt] ?? "").trim();
    if (found !== "" && !SUPPRESSION_REASONS.includes(found as SuppressionReason)) {
      fail(place, `the reason must be one of ${SUPPRESSION_REASONS.join(", ")}`);
    }
    return { address, reason: found === "" ? "manual" : (found as SuppressionReason) };
  });
}

function parseRows(text: string): string[][] {
  try {
    return parseCsv(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw createValidationError([{ in: "body", path: "", message: error.message }]);
  }
}

function streamCsv(suppressions: Suppressions): ReadableStream<Uint8Array> {
  let after: string | undefined;
  const encode = (rows: string[][]): Uint8Array => Buffer.from(formatCsv(rows));
  return new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encode([["email", "reason", "suppressed_at"]])),
    pull: async (controller) => {
      const rows = await suppressions.list({ limit: EXPORT_PAGE, after });
      if (rows.length === 0) return controller.close();
      after = rows.at(-1)!.address;
      controller.enqueue(
        encode(
          rows.map((row) => [row.address, row.reason, new Date(row.suppressed_at).toISOString()]),
        ),
      );
    },
  });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function missing(): PlatformError {
  return new PlatformError("not_found", "The address is not on the suppression list.");
}
