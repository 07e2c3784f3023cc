// Captured requests as the relay describes them, and their text forms.
import type { Answer } from "../contract/answer.ts";

/** A request in the list. */
export type Captured = Omit<Exchange, "request" | "response">;

/** The captured part of a body. */
export type Body = NonNullable<Exchange["request"]>["body"];

/** A request with its messages. */
export type Exchange = Exclude<
  Answer<"tunnel", "GET /tunnels/{id}/requests/{reqID}">,
  { log: unknown }
>;

/** Fields that curl or the relay set themselves. */
const SKIPPED =
  /^(?:host|content-length|transfer-encoding|connection|forwarded|x-forwarded-.*|x-request-id|traceparent|tracestate|te|accept-encoding)$/i;

/** The request as a command; hidden credentials stay hidden. */
export function describeCurl({ method, path, request }: Exchange, origin: string): string {
  const headers = (request?.headers ?? [])
    .filter(([name]) => !SKIPPED.test(name))
    .map(([name, value]) => `-H ${quote(value === "" ? `${name};` : `${name}: ${value}`)}`);
  const body = request?.body;
  const data =
    body === undefined || body.bytes === 0
      ? []
      : [body.encoding === "utf8" ? `--data-raw ${quote(body.text)}` : "--data-binary @body"];
  const url = `${origin}${path}`;
  // Brackets and braces are patterns to curl.
  const literal = /[[\]{}]/.test(url) ? ["--globoff"] : [];
  const verb = method === "HEAD" ? "--head" : `-X ${method}`;
  return ["curl", verb, ...literal, ...headers, ...data, quote(url)].join(" ");
}

/** Headers as lines. */
export function formatHeaders({ request }: Exchange): string {
  return (request?.headers ?? []).map(([name, value]) => `${name}: ${value}`).join("\n");
}

/** Headers of lines; those without a name are left out. */
export function parseHeaders(text: string): [string, string][] {
  return text.split("\n").flatMap((line): [string, string][] => {
    const at = line.indexOf(":");
    return at <= 0 ? [] : [[line.slice(0, at).trim(), line.slice(at + 1).trim()]];
  });
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
