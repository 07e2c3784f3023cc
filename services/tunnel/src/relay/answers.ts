// Answers of the relay itself to public requests: a page for browsers, a problem document for programs.
import { Known, type AnswerHeaders } from "@platform/http1";
import { PlatformError, toProblem, type ErrorCode } from "@platform/kernel/errors";
import type { RelayExchange } from "./request-state.ts";

/** Codes in `X-Platform-Tunnel-Error`. */
export type TunnelErrorCode = keyof typeof FORMS;

interface Form {
  readonly code: ErrorCode;
  readonly detail: string;
}

/** One row per code: the platform's error code with its status, and the text. */
const FORMS = {
  unknown_host: { code: "not_found", detail: "There is no tunnel with this name." },
  tunnel_offline: {
    code: "upstream_unreachable",
    detail: "The tunnel's client is not connected.",
  },
  client_unresponsive: {
    code: "upstream_unreachable",
    detail: "The tunnel's client does not respond.",
  },
  target_refused: {
    code: "upstream_unreachable",
    detail: "The local service refused the connection: it is probably not running.",
  },
  target_unreachable: {
    code: "upstream_unreachable",
    detail: "The local service could not be reached.",
  },
  target_tls_failed: {
    code: "upstream_unreachable",
    detail: "The TLS handshake with the local service failed.",
  },
  target_broke_off: {
    code: "upstream_unreachable",
    detail: "The local service closed the connection without a response.",
  },
  invalid_response: {
    code: "upstream_invalid_response",
    detail: "The response of the local service is not valid HTTP.",
  },
  target_timeout: {
    code: "upstream_timeout",
    detail: "The local service did not respond in time.",
  },
  too_many_requests: {
    code: "overloaded",
    detail: "Too many requests are waiting for this tunnel.",
  },
  unauthorized: { code: "unauthorized", detail: "This tunnel requires credentials." },
  too_many_attempts: {
    code: "too_many_requests",
    detail: "Too many failed attempts from this address.",
  },
  link_expired: { code: "gone", detail: "This link has expired or was already used." },
  draining: { code: "unavailable", detail: "The relay is restarting." },
} as const satisfies Record<string, Form>;

const PAGE_HEADERS: AnswerHeaders = [
  ["Content-Type", "text/html; charset=utf-8"],
  ["Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"],
];

/** Answers with an error of the relay. */
export function answerTunnelError(
  exchange: RelayExchange,
  code: TunnelErrorCode,
  headers: AnswerHeaders = [],
): void {
  const form: Form = FORMS[code];
  const error = new PlatformError(form.code, form.detail);
  exchange.userData.errorCode = code;
  const wantsPage = prefersPage(exchange);
  const retry: AnswerHeaders = error.status === 503 ? [["Retry-After", "1"]] : [];
  exchange.respond({
    status: error.status,
    headers: [
      ["X-Platform-Tunnel-Error", code],
      ["Cache-Control", "no-store"],
      ["Vary", "Accept"],
      ...(wantsPage ? PAGE_HEADERS : ([["Content-Type", "application/problem+json"]] as const)),
      ...retry,
      ...headers,
    ],
    body: wantsPage ? formatPage(error) : formatProblemOf(exchange, error),
  });
}

/** True if the client is a browser that shows a page. */
function prefersPage({ head }: RelayExchange): boolean {
  return (head.fields.get(Known.Accept) ?? "").toLowerCase().includes("text/html");
}

function formatProblemOf({ head, userData }: RelayExchange, error: PlatformError): string {
  const instance = head.pathString();
  return JSON.stringify(toProblem(error, { instance, traceId: userData.ids.traceId }));
}

// No part of the request is repeated, so nothing needs to be escaped.
function formatPage({ status, title, detail }: PlatformError): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${status} ${title}</title>
<h1>${title}</h1>
<p>${detail}</p>
<p><small>Status ${status}, answered by the tunnel's relay.</small></p>
</html>
`;
}
