// Requests to an issuer: bounded in time and size, without redirects.
import { OWN_REQUEST } from "../metrics/index.ts";

/** Options of {@link fetchFromIssuer}. */
export interface IssuerRequestOptions {
  url: string;
  headers: Readonly<Record<string, string>>;
  /** Timeout of the whole request in ms. */
  timeoutMs: number;
  /** Maximum size of the body in bytes. */
  bytesMax: number;
  /** Subject of error messages, such as "the issuer's keys". */
  subject: string;
  /** Sends the request. Default: to any address. */
  fetch?: IssuerFetch;
}

/** Sends a GET and returns its response; a redirect is one, or an error. */
export type IssuerFetch = (
  url: string,
  request: { headers: Readonly<Record<string, string>>; redirect: "error"; signal: AbortSignal },
) => Promise<Response>;

/** Sends requests to any address. */
export const fetchAnywhere: IssuerFetch = (url, request) => fetch(url, request);

/** Statuses of responses that cannot have a body (Fetch Standard, "null body status"). */
const BODILESS: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

/** Returns the JSON document of a successful response. Rejects for other statuses and larger or malformed bodies. */
export async function fetchFromIssuer(options: IssuerRequestOptions): Promise<unknown> {
  const { url, headers, timeoutMs, bytesMax, subject } = options;
  const answer = await (options.fetch ?? fetchAnywhere)(url, {
    headers: { ...headers, ...OWN_REQUEST },
    redirect: "error",
    signal: AbortSignal.timeout(timeoutMs),
  });
  const body = await readBody(answer, bytesMax, subject);
  if (!answer.ok) throw new Error(`${subject}: status ${answer.status}`);
  return JSON.parse(body.toString("utf8")) as unknown;
}

/**
 * Creates a `fetch` for libraries that read responses without a limit: it reads them itself, and rejects if a body has
 * more than `bytesMax` bytes after decoding. `subject` names the sender in the error.
 */
export function createBoundedFetch(
  bytesMax: number,
  subject: string,
): (url: string, options: object) => Promise<Response> {
  return async (url, options) => {
    const answer = await fetch(url, options);
    const body = await readBody(answer, bytesMax, subject);
    const { status, statusText, headers } = answer;
    return new Response(BODILESS.has(status) ? null : new Uint8Array(body), {
      status,
      statusText,
      headers,
    });
  };
}

async function readBody(answer: Response, bytesMax: number, subject: string): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.byteLength;
    if (size > bytesMax) throw new Error(`${subject}: more than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
