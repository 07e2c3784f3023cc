// Captured requests as the relay describes them, and their text forms.

/** A request in the list. */
export interface Captured {
  id: string;
  method: string;
  path: string;
  status: number;
  latency_ms: number;
  timestamp: string;
  state: "open" | "complete" | "broken";
  client: string;
  error: string;
  request_bytes: number;
  response_bytes: number;
  replay_of?: string;
}

/** The captured part of a body. */
export interface Body {
  encoding: "utf8" | "base64";
  text: string;
  bytes: number;
  truncated: boolean;
  /** Content-Encoding that was removed. */
  decoded?: string;
}

/** A request with its messages. */
export interface Exchange extends Captured {
  request: { line: string; headers: [string, string][]; body: Body } | null;
  response: { status: number; reason: string; headers: [string, string][]; body: Body } | null;
}

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
