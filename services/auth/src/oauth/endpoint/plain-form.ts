// Token requests that need none of the core's features beyond a form.
import type { IncomingMessage } from "node:http";
import { parse } from "node:querystring";

// The core's own limit; larger bodies are its to reject.
const BODY_BYTES_MAX = 57_344;
const FORM_PATTERN = /^application\/x-www-form-urlencoded(?:; ?charset=utf-8)?$/i;
// Proofs, attestations, encoded bodies and bodies that are sent on request.
const DECISIVE_HEADERS = [
  "dpop",
  "oauth-client-attestation",
  "oauth-client-attestation-pop",
  "content-encoding",
  "transfer-encoding",
  "expect",
] as const;

/** True if the request has a form of known length, none of the headers above, and accepts JSON errors. */
export function hasPlainForm({ headers }: IncomingMessage): boolean {
  const { accept, "content-type": type, "content-length": length } = headers;
  return (
    type !== undefined &&
    FORM_PATTERN.test(type) &&
    length !== undefined &&
    Number(length) <= BODY_BYTES_MAX &&
    DECISIVE_HEADERS.every((name) => headers[name] === undefined) &&
    // Errors for browsers are pages.
    (accept === undefined || !/text|html/i.test(accept))
  );
}

/** Reads the body of a request with a plain form, which has at most 56 KiB. */
export async function readPlainForm(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

/** The parameters of a form, parsed as the core does; `undefined` if one is repeated. Empty ones count as omitted. */
export function parsePlainForm(body: Buffer): ReadonlyMap<string, string> | undefined {
  const params = new Map<string, string>();
  for (const [name, value] of Object.entries(parse(body.toString("utf8")))) {
    if (typeof value !== "string") return undefined;
    if (value !== "") params.set(name, value);
  }
  return params;
}
