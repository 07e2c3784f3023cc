// Lists and contents of stored messages: those of the development inbox, and received ones.
import { readPage, type PagedList } from "@platform/kernel/http";

/** Returns a page of messages as the API shows them. */
export async function listMessages<Row, Key extends string | number>(
  query: { limit: number; cursor?: string | undefined },
  list: PagedList<Row, Key>,
  show: (row: Row) => object,
): Promise<object> {
  const page = await readPage(query, list);
  return { messages: page.items.map(show), next_cursor: page.next_cursor };
}

/** Returns the answer with the bytes of a message. */
export function respondRaw(content: Uint8Array): Response {
  return new Response(new Uint8Array(content), { headers: { "Content-Type": "message/rfc822" } });
}
