// CORS: which pages may use the broker from a browser (https://fetch.spec.whatwg.org/#http-cors-protocol).
import type { IncomingMessage, ServerResponse } from "node:http";

/** Sets the CORS headers for allowed origins and answers preflight requests; returns true if it answered. */
export function handleCors(
  origins: readonly string[],
  request: IncomingMessage,
  response: ServerResponse,
): boolean {
  const { origin } = request.headers;
  if (origin === undefined || origins.length === 0) return false;
  response.setHeader("Vary", "Origin");
  if (!origins.includes(origin)) return false;
  response.setHeader("Access-Control-Allow-Origin", origin);
  response.setHeader("Access-Control-Allow-Credentials", "true");
  response.setHeader("Access-Control-Expose-Headers", "Last-Event-ID, Retry-After");
  response.setHeader("Cross-Origin-Resource-Policy", "cross-origin");
  const isPreflight =
    request.method === "OPTIONS" && request.headers["access-control-request-method"] !== undefined;
  if (!isPreflight) return false;
  response.writeHead(204, {
    "Access-Control-Allow-Methods": "GET, POST, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Last-Event-ID, traceparent",
    "Access-Control-Max-Age": "600",
  });
  response.end();
  return true;
}
