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
// One space and complete base64, as the core requires.
const STRICT_BASIC_PATTERN =
  /^basic (?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/i;
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
  const credentials = readCredentials(authorization, form);
  if (credentials === undefined) throw refuse(authorization);
  if (!isNamed(credentials, form)) {
    throw new OAuthError(400, "invalid_request", "client_id differs from the authenticated client");
  }
  const client = await proveClient(provider, credentials);
  if (client === undefined) throw refuse(authorization);
  return { kind: "client", client };
}

/**
 * The client of a token request that authenticates by a secret or has none; `undefined` for all requests that the core
 * has to judge: wrong credentials, assertions, and spellings of the header that it does not accept.
 */
export async function findPlainClient(
  provider: Provider,
  { headers: { authorization } }: IncomingMessage,
  form: ReadonlyMap<string, string>,
): Promise<CoreClient | undefined> {
  if (form.has("client_assertion")) return undefined;
  const isStrict =
    authorization === undefined ||
    (!form.has("client_secret") && STRICT_BASIC_PATTERN.test(authorization));
  const credentials = isStrict ? readCredentials(authorization, form) : undefined;
  if (credentials === undefined || !isNamed(credentials, form)) return undefined;
  return proveClient(provider, credentials);
}

interface Credentials {
  id: string;
  /** Absent for public clients. */
  secret: string | undefined;
}

function readCredentials(
  authorization: string | undefined,
  form: ReadonlyMap<string, string>,
): Credentials | undefined {
  if (authorization === undefined) {
    const id = form.get("client_id");
    return id === undefined ? undefined : { id, secret: form.get("client_secret") };
  }
  const encoded = BASIC_PATTERN.exec(authorization)?.[1];
  const text = encoded === undefined ? "" : Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  if (colon < 1) return undefined;
  const id = decodeFormText(text.slice(0, colon));
  const secret = decodeFormText(text.slice(colon + 1));
  return id === undefined || !secret ? undefined : { id, secret };
}

// True unless the form names another client than the header.
function isNamed({ id }: Credentials, form: ReadonlyMap<string, string>): boolean {
  return !form.has("client_id") || form.get("client_id") === id;
}

async function proveClient(
  provider: Provider,
  { id, secret }: Credentials,
): Promise<CoreClient | undefined> {
  const client = await findCoreClient(provider, id);
  const method = client?.clientAuthMethod ?? "";
  if (client === undefined) return undefined;
  if (secret === undefined) return method === "none" ? client : undefined;
  if (!SECRET_METHODS.has(method) || client.clientSecret === undefined) return undefined;
  if (isSecretExpired(client)) return undefined;
  return (await client.compareClientSecret(secret)) ? client : undefined;
}

function isSecretExpired(client: CoreClient): boolean {
  try {
    client.checkClientSecretExpiration("the client's secret has expired");
    return false;
  } catch {
    return true;
  }
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
