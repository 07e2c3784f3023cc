// The CORS configuration of a bucket: origins of pages that may use it.
import { createUrlSigner } from "@platform/s3/signature";
import { explain, send, type Method } from "./api-client.ts";
import { findStorageIdentity } from "./connect.ts";
import { findService, type Target } from "./target.ts";

const ALLOWED = ["GET", "HEAD", "PUT", "POST", "DELETE"];

/** The origin of a URL that a user gave, such as `https://notes.example.com`. Throws for other text. */
export function readOrigin(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || `${url.origin}/` !== url.href) {
    throw new Error(
      `${JSON.stringify(text)} is not an origin: http or https and a host, such as https://notes.example.com`,
    );
  }
  return url.origin;
}

/**
 * Lets pages of these origins use presigned URLs and keys of a bucket. False, and nothing changes, if the bucket has a
 * CORS configuration already.
 */
export async function allowOrigins(
  target: Target,
  bucket: string,
  origins: readonly string[],
): Promise<boolean> {
  const found = await callCors(target, "GET", bucket);
  if (found.ok) return false;
  const answer = await callCors(target, "PUT", bucket, formatRule(origins));
  if (answer.ok) return true;
  throw new Error(explain("storage", answer.status, await answer.text()));
}

function formatRule(origins: readonly string[]): string {
  const rule = [
    ...origins.map((origin) => `<AllowedOrigin>${origin}</AllowedOrigin>`),
    ...ALLOWED.map((method) => `<AllowedMethod>${method}</AllowedMethod>`),
    "<AllowedHeader>*</AllowedHeader><ExposeHeader>ETag</ExposeHeader>",
  ];
  return `<CORSConfiguration><CORSRule>${rule.join("")}</CORSRule></CORSConfiguration>`;
}

function callCors(target: Target, method: Method, bucket: string, body = ""): Promise<Response> {
  const { url: base, label } = findService(target, "vault", "storage");
  const sign = createUrlSigner(findStorageIdentity(target));
  const url = new URL(`/${bucket}?cors`, base);
  const headers = sign(method, url, body);
  return send(label, url, { method, headers, ...(body === "" ? {} : { body }) });
}
