// CORS: pages at the origins of a client's redirect URIs may read the responses to that client.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Provider } from "oidc-provider";
import { findCoreClient } from "../core/core-client.ts";

/** True if the origin belongs to the client or to this service. */
export function isOriginOf(
  client: { readonly redirectUris?: readonly string[] | undefined },
  origin: string,
  issuer: string,
): boolean {
  if (origin === "null") return false;
  if (origin === issuer) return true;
  return client.redirectUris?.some((uri) => URL.parse(uri)?.origin === origin) ?? false;
}

/** Lets the requesting page read the response until the client is known; errors contain no secrets. */
export function openToOrigin(request: IncomingMessage, response: ServerResponse): void {
  response.setHeader("Vary", "Origin");
  const { origin } = request.headers;
  if (origin === undefined) return;
  response.setHeader("Access-Control-Allow-Origin", origin);
  response.setHeader("Access-Control-Expose-Headers", "WWW-Authenticate");
}

/** Removes the permission if the page does not belong to this client. */
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
