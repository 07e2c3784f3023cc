// Captured requests as an HTTP archive (HAR 1.2), which browsers and other tools import.
import { z } from "zod";
import { VERSION } from "../config.ts";
import type { Detail } from "./describe.ts";

type Header = readonly [name: string, value: string];
type Body = NonNullable<Detail["request"]>["body"];

/** An archive. */
export const harSchema = z
  .object({ log: z.record(z.string(), z.unknown()) })
  .meta({ id: "Har", description: "An HTTP archive (HAR 1.2)." });

type Har = z.infer<typeof harSchema>;

/** Formats requests as an archive. `origin` is the tunnel's public URL. Credentials are already hidden. */
export function formatHar(requests: readonly Detail[], origin: string): Har {
  return {
    log: {
      version: "1.2",
      creator: { name: "platform-tunnel", version: VERSION },
      entries: requests.map((request) => formatEntry(request, origin)),
    },
  };
}

function formatEntry(detail: Detail, origin: string): object {
  return {
    startedDateTime: detail.timestamp,
    time: detail.latency_ms,
    request: formatRequest(detail, origin),
    response: formatResponse(detail),
    cache: {},
    // Only the whole time is known.
    timings: { send: 0, wait: detail.latency_ms, receive: 0 },
    ...(detail.error === "" ? {} : { comment: `answered by the relay: ${detail.error}` }),
  };
}

function formatRequest({ method, path, request, request_bytes: bytes }: Detail, origin: string) {
  const url = path.startsWith("/") ? `${origin}${path}` : path;
  const body = request?.body;
  return {
    method,
    url,
    httpVersion: "HTTP/1.1",
    headers: formatHeaders(request?.headers ?? []),
    cookies: [],
    queryString: listParameters(path),
    ...(body === undefined || body.bytes === 0
      ? {}
      : {
          postData: {
            mimeType: findHeader(request?.headers ?? [], "content-type"),
            text: body.text,
            ...commentBody(body),
          },
        }),
    headersSize: -1,
    bodySize: bytes,
  };
}

function formatResponse({ status, response, response_bytes: bytes }: Detail) {
  const headers = response?.headers ?? [];
  return {
    status,
    statusText: response?.reason ?? "",
    httpVersion: "HTTP/1.1",
    headers: formatHeaders(headers),
    cookies: [],
    content: {
      size: bytes,
      mimeType: findHeader(headers, "content-type"),
      ...(response === null
        ? {}
        : {
            text: response.body.text,
            ...(response.body.encoding === "base64" ? { encoding: "base64" } : {}),
            ...commentBody(response.body),
          }),
    },
    redirectURL: findHeader(headers, "location"),
    headersSize: -1,
    bodySize: bytes,
  };
}

function formatHeaders(headers: readonly Header[]): { name: string; value: string }[] {
  return headers.map(([name, value]) => ({ name, value }));
}

function findHeader(headers: readonly Header[], name: string): string {
  return headers.find(([key]) => key.toLowerCase() === name)?.[1] ?? "";
}

function listParameters(path: string): { name: string; value: string }[] {
  const start = path.indexOf("?");
  if (start === -1) return [];
  return [...new URLSearchParams(path.slice(start))].map(([name, value]) => ({ name, value }));
}

function commentBody(body: Body): { comment?: string } {
  const notes = [
    ...(body.truncated ? [`the first ${body.bytes} bytes`] : []),
    ...(body.encoding === "base64" ? ["base64"] : []),
  ];
  return notes.length === 0 ? {} : { comment: notes.join(", ") };
}
