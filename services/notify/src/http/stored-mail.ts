// Lists and contents of stored messages: those of the development inbox, and received ones.
import { z } from "zod";
import { readPage, type PagedList } from "@platform/kernel/http";
import { VIEW_POLICY } from "../inbox/view.ts";

/** Query of HTML views. */
export const viewQuery = z.object({
  scheme: z
    .enum(["light", "dark"])
    .default("light")
    .describe("Colour scheme for mails that have no colours of their own."),
});

/** Returns a page of messages as the API shows them. */
export async function listMessages<Row, Key extends string | number, Shown>(
  query: { limit: number; cursor?: string | undefined },
  list: PagedList<Row, Key>,
  show: (row: Row) => Shown,
): Promise<{ messages: Shown[]; next_cursor: string | null }> {
  const page = await readPage(query, list);
  return { messages: page.items.map(show), next_cursor: page.next_cursor };
}

/** Returns the answer with the bytes of a message. */
export function respondRaw(content: Uint8Array): Response {
  return new Response(new Uint8Array(content), { headers: { "Content-Type": "message/rfc822" } });
}

/** Returns the answer with an HTML view, which can be shown only in a frame without scripts. */
export function respondView(html: string, { scheme }: z.output<typeof viewQuery>): Response {
  // In front of the mail, whose own declaration comes later and wins.
  const meta = scheme === "dark" ? '<meta name="color-scheme" content="dark">' : "";
  return new Response(`<!doctype html>${meta}${html}`, {
    headers: {
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": VIEW_POLICY,
      "X-Frame-Options": "SAMEORIGIN",
    },
  });
}
