// Requests to an issuer: bounded in time and size, without redirects.

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
}

/** Returns the JSON document of a successful response. Rejects for other statuses and larger or malformed bodies. */
export async function fetchFromIssuer(options: IssuerRequestOptions): Promise<unknown> {
  const { url, headers, timeoutMs, bytesMax, subject } = options;
  const answer = await fetch(url, {
    headers,
    redirect: "error",
    signal: AbortSignal.timeout(timeoutMs),
  });
  const text = await readText(answer, bytesMax, subject);
  if (!answer.ok) throw new Error(`${subject}: status ${answer.status}`);
  return JSON.parse(text) as unknown;
}

async function readText(answer: Response, bytesMax: number, subject: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.byteLength;
    if (size > bytesMax) throw new Error(`${subject}: more than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
