// Client authentication by secret without the core, because resource servers introspect tokens with every request.
import type { IncomingMessage } from "node:http";
import type { Provider } from "oidc-provider";
import { findCoreClient, type CoreClient } from "../core/core-client.ts";
import { OAuthError } from "./endpoint.ts";

/** The authenticated caller. `assertion` is verified by the core. */
export type Asker =
  | { kind: "client"; client: CoreClient }
  | { kind: "bearer"; token: string }
  | { kind: "assertion" };

const SECRET_METHODS = new Set(["client_secret_basic", "client_secret_post"]);
const BASIC_PATTERN = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i;
const BEARER_PATTERN = /^bearer +([A-Za-z0-9._~+/-]+=*) *$/i;

/** Authenticates the caller. Throws 401 `invalid_client` without valid credentials. */
export async function identifyAsker(
  provider: Provider,
  request: IncomingMessage,
  form: ReadonlyMap<string, string>,
): Promise<Asker> {
  const { authorization } = request.headers;
  const bearer = authorization === undefined ? null : BEARER_PATTERN.exec(authorization);
  if (bearer !== null) return { kind: "bearer", token: bearer[1]! };
  const count = [authorization, form.get("client_secret"), form.get("client_assertion")].filter(
    (given) => given !== undefined,
  ).length;
  if (count > 1) {
    throw new OAuthError(400, "invalid_request", "client authentication must use one mechanism");
  }
  if (form.has("client_assertion")) return { kind: "assertion" };
  const { id, secret } = readCredentials(authorization, form);
  if (id === undefined) throw refuse(authorization);
  const client = await findCoreClient(provider, id);
  if (client === undefined) throw refuse(authorization);
  const method = client.clientAuthMethod ?? "";
  if (secret === undefined) {
    if (method !== "none") throw refuse(authorization);
    return { kind: "client", client };
  }
  if (!SECRET_METHODS.has(method) || client.clientSecret === undefined) throw refuse(authorization);
  client.checkClientSecretExpiration("the client's secret has expired");
  if (!(await client.compareClientSecret(secret))) throw refuse(authorization);
  return { kind: "client", client };
}

function readCredentials(
  authorization: string | undefined,
  form: ReadonlyMap<string, string>,
): { id: string | undefined; secret: string | undefined } {
  if (authorization === undefined) {
    return { id: form.get("client_id"), secret: form.get("client_secret") };
  }
  const encoded = BASIC_PATTERN.exec(authorization)?.[1];
  const text = encoded === undefined ? "" : Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  if (colon < 1) throw refuse(authorization);
  const id = decodeFormText(text.slice(0, colon));
  const secret = decodeFormText(text.slice(colon + 1));
  if (id === undefined || !secret) throw refuse(authorization);
  if (form.has("client_id") && form.get("client_id") !== id) {
    throw new OAuthError(400, "invalid_request", "client_id differs from the authenticated client");
  }
  return { id, secret };
}

// RFC 6749 section 2.3.1: id and secret are form-encoded before they are joined.
function decodeFormText(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", "%20"));
  } catch {
    return undefined;
  }
}

function refuse(authorization: string | undefined): OAuthError {
  return new OAuthError(
    401,
    "invalid_client",
    "client authentication failed",
    authorization === undefined ? undefined : 'Basic realm="oauth", error="invalid_client"',
  );
}
