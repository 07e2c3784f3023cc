// Versions of documents, so that a change does not overwrite one that its sender has not seen.
import { createEtag, requireIfMatch, type Exchange } from "@platform/kernel/http";

type AnyExchange = Pick<Exchange<unknown, unknown, unknown>, "headers" | "answerHeaders">;

/** Problem of operations that accept If-Match. */
export const CHANGED = { 412: "It has changed since the ETag in If-Match" };

/** Gives the answer the ETag of a document. */
export function showVersion({ answerHeaders }: AnyExchange, document: unknown): void {
  answerHeaders.set("ETag", tagOf(document));
}

/** Throws 412 if the request has an If-Match that the present document does not match. */
export async function requireVersion(
  { headers }: AnyExchange,
  read: () => Promise<unknown>,
): Promise<void> {
  if (headers.get("if-match") !== null) requireIfMatch(headers, tagOf(await read()));
}

function tagOf(document: unknown): string {
  return createEtag(JSON.stringify(document));
}
