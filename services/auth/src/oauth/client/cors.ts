// Which pages may read answers (the Fetch standard's CORS protocol): those at the origins of a client's redirect URIs.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Provider } from "oidc-provider";
import { findCoreClient } from "../core/core-client.ts";

/** Whether a page of this origin is the client's, or our own. */
export function isOriginOf(
  client: { readonly redirectUris?: readonly string[] | undefined },
  origin: string,
  issuer: string,
): boolean {
  if (origin === "null") return false;
  if (origin === issuer) return true;
  return client.redirectUris?.some((uri) => URL.parse(uri)?.origin === origin) ?? false;
}

/** Lets the asking page read the answer, until it is known whose answer it is: errors are nobody's secret. */
export function openToOrigin(request: IncomingMessage, response: ServerResponse): void {
  response.setHeader("Vary", "Origin");
  const { origin } = request.headers;
  if (origin === undefined) return;
  response.setHeader("Access-Control-Allow-Origin", origin);
  response.setHeader("Access-Control-Expose-Headers", "WWW-Authenticate");
}

/** Takes that back where the page is not of this client. */
export async function keepToClient(
  provider: Provider,
  clientId: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { origin } = request.headers;
  if (origin === undefined) return;
  const client = await findCoreClient(provider, clientId);
  if (client === undefined || !isOriginOf(client, origin, provider.issuer))
    response.removeHeader("Access-Control-Allow-Origin");
}
