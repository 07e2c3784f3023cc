// A relying party of plain requests, for requests that real libraries do not allow.
import { createHash, randomBytes } from "node:crypto";
import { Browser } from "@platform/testing/browser";
import type { Host } from "./host.ts";

/** The redirect URI; no process listens there. */
export const CALLBACK = "http://localhost:9/callback";

/** All scopes of the tests. */
export const ALL_SCOPES = "openid offline_access profile email orders.read orders.write";

/** A registered client. */
export interface TestClient {
  client_id: string;
  client_secret: string;
}

/** An answer of an endpoint. */
export interface Answer {
  status: number;
  headers: Headers;
  body: Record<string, unknown>;
}

/** Options of a request. */
export interface PostOptions {
  /** Authenticates with client_secret_basic; absent for an unauthenticated request. */
  as?: TestClient | undefined;
  headers?: Record<string, string>;
  /** Another node than the issuer. */
  at?: string;
}

/** All scopes, without offline_access if the grant types do not include refresh_token. */
export function chooseScope(grantTypes: unknown): string {
  const canRefresh = !Array.isArray(grantTypes) || grantTypes.includes("refresh_token");
  return canRefresh ? ALL_SCOPES : ALL_SCOPES.replace("offline_access ", "");
}

/** Registers a client with all grant types and scopes. */
export async function register(
  host: Host,
  more: Record<string, unknown> = {},
): Promise<TestClient> {
  const registered = await host.oauth.clients.add(
    {
      redirect_uris: [CALLBACK],
      grant_types: ["authorization_code", "refresh_token", "client_credentials"],
      scope: chooseScope(more["grant_types"]),
      ...more,
    },
    undefined,
  );
  return registered as unknown as TestClient;
}

/** Posts a form. */
export async function post(
  host: Host,
  path: string,
  form: Record<string, string> | string,
  options: PostOptions = {},
): Promise<Answer> {
  const response = await fetch(`${options.at ?? host.origin}${path}`, {
    method: "POST",
    redirect: "manual",
    headers: {
      "content-type": "application/x-www-form-urlencoded",
      ...(options.as === undefined ? {} : { authorization: basic(options.as) }),
      ...options.headers,
    },
    body: typeof form === "string" ? form : new URLSearchParams(form).toString(),
  });
  return toAnswer(response);
}

/** Reads an answer. */
export async function toAnswer(response: Response): Promise<Answer> {
  const text = await response.text();
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  return {
    status: response.status,
    headers: response.headers,
    body: isJson ? (JSON.parse(text) as Record<string, unknown>) : { text },
  };
}

/** The `Authorization` of client_secret_basic. */
export function basic({ client_id, client_secret }: TestClient): string {
  return `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString("base64")}`;
}

/** Posts to the token endpoint. */
export function postToken(
  host: Host,
  form: Record<string, string>,
  options?: PostOptions,
): Promise<Answer> {
  return post(host, "/api/v1/auth/token", form, options);
}

/** A PKCE pair. */
export function createPkce(): { verifier: string; challenge: string } {
  const verifier = randomBytes(32).toString("base64url");
  return { verifier, challenge: createHash("sha256").update(verifier).digest("base64url") };
}

/** The URL of an authorization request. */
export function buildAuthorizeUrl(
  host: Host,
  client: TestClient,
  params: Record<string, string>,
): URL {
  const url = new URL("/api/v1/auth/authorize", host.issuer);
  url.search = new URLSearchParams({
    client_id: client.client_id,
    response_type: "code",
    redirect_uri: CALLBACK,
    scope: ALL_SCOPES,
    prompt: "consent",
    ...params,
  }).toString();
  return url;
}

/** Follows a browser to the callback and returns its parameters. */
export async function authorize(
  host: Host,
  client: TestClient,
  params: Record<string, string>,
  browser: Browser = new Browser(host.origin),
): Promise<URLSearchParams> {
  const landing = await browser.open(buildAuthorizeUrl(host, client, params), (url) =>
    url.href.startsWith(CALLBACK),
  );
  if (!landing.url.href.startsWith(CALLBACK)) {
    throw new Error(`${landing.url.href} ${landing.status} ${landing.text}`);
  }
  return landing.url.searchParams;
}

/** A code and its verifier. */
export async function obtainCode(
  host: Host,
  client: TestClient,
  params: Record<string, string> = {},
  browser?: Browser,
): Promise<Record<string, string>> {
  const { verifier, challenge } = createPkce();
  const answer = await authorize(
    host,
    client,
    { code_challenge: challenge, code_challenge_method: "S256", ...params },
    browser,
  );
  const code = answer.get("code");
  if (code === null) throw new Error(answer.toString());
  return {
    grant_type: "authorization_code",
    code,
    redirect_uri: CALLBACK,
    code_verifier: verifier,
  };
}

/** Tokens of a user after the complete flow. */
export async function obtainTokens(
  host: Host,
  client: TestClient,
  params?: Record<string, string>,
  options?: PostOptions,
): Promise<{ access_token: string; refresh_token: string; id_token: string; scope: string }> {
  const { status, body } = await postToken(host, await obtainCode(host, client, params), {
    as: client,
    ...options,
  });
  if (status !== 200) throw new Error(JSON.stringify(body));
  return body as { access_token: string; refresh_token: string; id_token: string; scope: string };
}

/** Refreshes. */
export function refresh(
  host: Host,
  client: TestClient,
  token: string,
  options?: PostOptions,
): Promise<Answer> {
  return postToken(
    host,
    { grant_type: "refresh_token", refresh_token: token },
    { as: client, ...options },
  );
}

/** Introspects a token. */
export async function introspect(
  host: Host,
  client: TestClient,
  token: string,
  options?: PostOptions,
): Promise<Record<string, unknown>> {
  const { status, body } = await post(
    host,
    "/api/v1/auth/token/introspect",
    { token },
    { as: client, ...options },
  );
  if (status !== 200) throw new Error(`${status} ${JSON.stringify(body)}`);
  return body;
}

/** The claims of a JWT, unverified. */
export function readClaims(jwt: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(jwt.split(".")[1]!, "base64url").toString("utf8")) as Record<
    string,
    unknown
  >;
}
