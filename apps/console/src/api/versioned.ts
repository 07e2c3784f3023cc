// Documents that are changed only if nobody else has changed them since they were read.
import { ApiFailure, send } from "./api.ts";

/** A document as it was read; without one it does not exist. */
export interface Versioned<Document> {
  document: Document | undefined;
  etag: string | undefined;
}

/** Reads a document with its version. */
export async function readVersioned<Document>(
  path: string,
  signal?: AbortSignal,
): Promise<Versioned<Document>> {
  try {
    const response = await send(path, signal === undefined ? {} : { signal });
    const document = (await response.json()) as Document;
    return { document, etag: response.headers.get("etag") ?? undefined };
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 404) throw error;
    return { document: undefined, etag: undefined };
  }
}

/** Headers with which a change of another version is refused with 412. */
export function onlyIf(etag: string | undefined): Record<string, string> {
  return etag === undefined ? { "if-none-match": "*" } : { "if-match": etag };
}
