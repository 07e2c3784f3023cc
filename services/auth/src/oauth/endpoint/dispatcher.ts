// Dispatches requests of the OAuth paths to the core's current provider or to endpoints of this service.
import type { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { KoaContextWithOIDC, Provider } from "oidc-provider";
import type { NodeHandler } from "../../web/router.ts";
import {
  CORE_PAGE_POLICY,
  DOCUMENT_HEADERS,
  NO_STORE,
  OAUTH_HEADERS,
  PRIVATE_HEADERS,
} from "../../web/security-headers.ts";
import type { CoreClient } from "../core/core-client.ts";
import {
  CORE_ROUTES,
  DISCOVERY_ROUTES,
  listMethods,
  OAUTH_ROUTES,
  OWN_ROUTES,
} from "../core/routes.ts";
import { isCoreError } from "../token/direct-grants.ts";
import { keepToClient, openToOrigin } from "../client/cors.ts";
import { skipSignOut } from "../provider/named-sign-out.ts";
import { findPlainClient } from "./client-auth.ts";
import { DevicePolls, POLL_SECONDS } from "./device-polls.ts";
import { OAuthError, readPairs, sendError, sendJson, toOAuthError } from "./endpoint.ts";
import { hasPlainForm, parsePlainForm, readPlainForm } from "./plain-form.ts";
import type { Pending, TokenEndpoint, TokenEndpoints } from "./token-endpoints.ts";
import { serveUserinfo, type UserinfoOptions } from "./userinfo.ts";

export interface OAuthDispatcherOptions {
  issuer: string;
  endpoints: TokenEndpoints;
  userinfo: UserinfoOptions;
  log: Logger;
  clock: Clock;
  getScopes: () => ReadonlySet<string>;
  /** Builds a provider from the current keys and scopes. */
  build: () => Provider;
  onTokenIssued: (grant: string) => void;
  /** Called when a user has signed out of a session at the core. */
  onSignOut: (sid: string) => Promise<void>;
}

interface Face {
  provider: Provider;
  callback: ReturnType<Provider["callback"]>;
  /** Responses that are the same for everyone, cached from the first request. */
  documents: Map<string, Buffer>;
}

// A request line and its headers may have 16 KiB together.
const QUERY_CHARACTERS_MAX = 8_192;
const DOCUMENT_PATHS = new Set<string>([...DISCOVERY_ROUTES, CORE_ROUTES.jwks]);
interface RequestContext {
  readonly route: string;
  /** The part of a token request that waits until the core has authenticated the client. */
  pending?: Pending;
}

/** Answers requests of the OAuth paths. */
export class OAuthDispatcher implements NodeHandler {
  readonly routes: ReadonlyMap<string, string> = new Map(OAUTH_ROUTES.map((path) => [path, path]));
  readonly #options: OAuthDispatcherOptions;
  readonly #host: string;
  readonly #scheme: string;
  readonly #polls: DevicePolls;
  readonly #contexts = new WeakMap<IncomingMessage, RequestContext>();
  #face: Face;

  constructor(options: OAuthDispatcherOptions) {
    this.#options = options;
    this.#polls = new DevicePolls(options.clock);
    const { host, protocol } = new URL(options.issuer);
    this.#host = host;
    this.#scheme = protocol.slice(0, -1);
    this.#face = this.#open();
  }

  /** The current provider. */
  get provider(): Provider {
    return this.#face.provider;
  }

  /** Replaces the provider; requests in flight finish with the previous one. */
  rebuild(): void {
    this.#face = this.#open();
  }

  /** Answers a request of the core's paths. */
  handle(request: IncomingMessage, response: ServerResponse, path: string, route: string): void {
    this.#contexts.set(request, { route });
    this.#serve(path, request, response).catch((error: unknown) => {
      this.#fail(error, path, response);
    });
  }

  async #serve(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const face = this.#face;
    const { method } = request;
    const document = method === "GET" || method === "HEAD" ? face.documents.get(path) : undefined;
    if (document !== undefined) {
      sendDocument(response, path, document);
      return;
    }
    setHeaders(response, OAUTH_HEADERS);
    this.#adoptIssuer(request);
    const { endpoints, userinfo } = this.#options;
    switch (path) {
      case CORE_ROUTES.token:
        if (method !== "POST") break;
        return this.#serveToken(face, request, response);
      case CORE_ROUTES.introspection:
      case CORE_ROUTES.revocation:
        if (method !== "POST") break;
        return this.#serveTokenEndpoint(
          path === CORE_ROUTES.introspection ? "introspect" : "revoke",
          face,
          request,
          response,
        );
      case CORE_ROUTES.authorization:
      case CORE_ROUTES.end_session:
        if (method !== "POST") break;
        return redirectForm(path, request, response);
      case CORE_ROUTES.userinfo:
        if (method === "OPTIONS") break;
        if (method !== "GET" && method !== "POST") throw refuseMethod(response, path);
        return serveUserinfo(userinfo, request, response);
      case OWN_ROUTES.revocations:
        if (method !== "GET") throw refuseMethod(response, path);
        return endpoints.serveFeed(request, response);
      default:
    }
    if (path !== CORE_ROUTES.token) response.setHeader("Content-Security-Policy", CORE_PAGE_POLICY);
    if (!DOCUMENT_PATHS.has(path)) setHeaders(response, PRIVATE_HEADERS);
    await face.callback(request, response);
  }

  // URLs, cookies and DPoP targets are those of the issuer, independent of the proxy that a request came through.
  #adoptIssuer({ headers }: IncomingMessage): void {
    headers.host = this.#host;
    headers["x-forwarded-proto"] = this.#scheme;
    delete headers["x-forwarded-host"];
  }

  // The core answers all that this service's own path does not grant, so that its errors are the only ones.
  async #serveToken(face: Face, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (hasPlainForm(request)) {
      const body = await readPlainForm(request);
      if (await this.#grantDirectly(face, request, response, body)) return;
      replaceBody(request, body);
    }
    setHeaders(response, PRIVATE_HEADERS);
    await face.callback(request, response);
  }

  async #grantDirectly(
    { provider }: Face,
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer,
  ): Promise<boolean> {
    const params = parsePlainForm(body);
    if (params === undefined) return false;
    const client = await findPlainClient(provider, request, params);
    if (client === undefined) return false;
    const answer = await this.#options.endpoints.grants
      .grant({ provider, client, params })
      .catch(readError);
    if (answer === undefined) return false;
    openToOrigin(request, response);
    await keepToClient(provider, client.clientId, request, response);
    if (answer instanceof OAuthError) throw answer;
    sendJson(response, 200, answer);
    this.#options.onTokenIssued(params.get("grant_type") ?? "");
    return true;
  }

  async #serveTokenEndpoint(
    endpoint: TokenEndpoint,
    face: Face,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const left = await this.#options.endpoints.serve(endpoint, request, response);
    if (left === undefined) return;
    this.#contexts.get(request)!.pending = left.pending;
    replaceBody(request, Buffer.from(left.body));
    await face.callback(request, response);
  }

  #fail(error: unknown, path: string, response: ServerResponse): void {
    if (!(error instanceof OAuthError)) {
      this.#options.log.error("OAuth request failed", { path, error });
    }
    if (response.headersSent) {
      response.destroy();
      return;
    }
    sendError(response, toOAuthError(error));
  }

  #open(): Face {
    const provider = this.#options.build();
    const documents = new Map<string, Buffer>();
    provider.use(async (ctx, next) => {
      // The core would submit a code in the URL by script; our page fills in the field instead.
      if (ctx.method === "GET" && ctx.path === CORE_ROUTES.code_verification) ctx.search = "";
      await next();
      await this.#complete(ctx as KoaContextWithOIDC, documents);
    });
    provider.on("server_error", (ctx, error) => {
      this.#options.log.error("OAuth core failed", { path: ctx.path, error });
      answerUnavailable(ctx, toOAuthError(error));
    });
    (provider as EventEmitter).on("error", (error: unknown) => {
      this.#options.log.error("OAuth core failed", { error });
    });
    provider.on("grant.success", (ctx) => {
      this.#options.onTokenIssued(String(ctx.oidc.params?.["grant_type"]));
    });
    return { provider, callback: provider.callback(), documents };
  }

  async #answerPending(ctx: KoaContextWithOIDC, pending: Pending): Promise<void> {
    try {
      ctx.body = await this.#options.endpoints.answerFor(pending, ctx.oidc.client as CoreClient);
    } catch (error) {
      const failure = toOAuthError(error);
      if (failure.status === 500) throw error;
      ctx.status = failure.status;
      if (failure.retryAfter !== undefined) ctx.set("Retry-After", failure.retryAfter);
      ctx.body = { error: failure.code, error_description: failure.message };
    }
  }

  async #complete(ctx: KoaContextWithOIDC, documents: Map<string, Buffer>): Promise<void> {
    const { route = "", pending } = this.#contexts.get(ctx.req) ?? {};
    if (pending !== undefined && ctx.status === 200) {
      await this.#answerPending(ctx, pending);
      return;
    }
    correctError(ctx, this.#polls, this.#options.getScopes());
    if (ctx.path === CORE_ROUTES.device_authorization && ctx.status === 200)
      Object.assign(ctx.body as object, { interval: POLL_SECONDS });
    if (ctx.status === 404 && (ctx.body === undefined || ctx.body === null)) {
      ctx.status = 405;
      ctx.set("Allow", listMethods(route));
      ctx.body = {
        error: "invalid_request",
        error_description: "the method is not supported",
      };
      return;
    }
    if (ctx.status === 200 && ctx.method !== "OPTIONS" && DOCUMENT_PATHS.has(ctx.path)) {
      const document = Buffer.from(JSON.stringify(ctx.body));
      documents.set(ctx.path, document);
      for (const name of ["Content-Security-Policy", "Referrer-Policy", "Vary"]) ctx.remove(name);
      ctx.body = document;
      ctx.set(describeDocument(ctx.path));
      return;
    }
    const session = ctx.oidc?.session as
      | { uid: string; accountId?: string; destroyed?: boolean }
      | undefined;
    if (ctx.path === CORE_ROUTES.end_session && ctx.status === 200 && session !== undefined) {
      if (session.accountId === undefined) skipSignOut(ctx);
      return;
    }
    if (ctx.path === `${CORE_ROUTES.end_session}/confirm` && session?.destroyed === true) {
      await this.#options.onSignOut(session.uid);
    }
  }
}

// RFC 6749 section 5.2 has more specific codes than the core's `invalid_request`, and the core never returns
// `slow_down`.
function correctError(
  ctx: KoaContextWithOIDC,
  polls: DevicePolls,
  scopes: ReadonlySet<string>,
): void {
  if (ctx.status !== 400) return;
  const body = ctx.body as { error?: string; error_description?: string } | undefined;
  if (body?.error === "authorization_pending") {
    if (!polls.note(String(ctx.oidc.params?.["device_code"]))) return;
    body.error = "slow_down";
    body.error_description = `the device must wait ${POLL_SECONDS} more seconds between two requests`;
  }
  nameScope(ctx, body, scopes);
  if (body?.error !== "invalid_request") return;
  if (body.error_description === "no client authentication mechanism provided") {
    body.error = "invalid_client";
    ctx.status = 401;
  } else if (body.error_description?.endsWith(" is not allowed for this client") === true) {
    body.error = "unauthorized_client";
  }
}

// The core names a rejected scope in a separate member only.
function nameScope(
  ctx: KoaContextWithOIDC,
  body: { error?: string; error_description?: string; scope?: string } | undefined,
  scopes: ReadonlySet<string>,
): void {
  if (body?.error === "invalid_scope" && typeof body.scope === "string")
    body.error_description = `${body.error_description}: ${body.scope}`;
  const asked: unknown = ctx.oidc?.body?.["scope"];
  const isUnnamed = body?.error_description?.startsWith("scope must only contain ") === true;
  if (body !== undefined && isUnnamed && typeof asked === "string") {
    const unknown = asked.split(" ").find((name) => !scopes.has(name));
    if (unknown !== undefined) body.error_description = `scope: unknown scope ${unknown}`;
  }
}

// The core responds with 500 to errors it does not know; this restores the 503. HTML error pages are rendered later.
function answerUnavailable(ctx: KoaContextWithOIDC, error: OAuthError): void {
  if (error.status !== 503) return;
  ctx.status = 503;
  ctx.set("Retry-After", error.retryAfter ?? "1");
  if (ctx.type !== "text/html") {
    ctx.body = { error: error.code, error_description: error.message };
  }
}

function sendDocument(response: ServerResponse, path: string, document: Buffer): void {
  response
    .writeHead(200, { ...describeDocument(path), "Content-Length": document.length })
    .end(document);
}

function describeDocument(path: string): Record<string, string> {
  return {
    "Content-Type":
      path === CORE_ROUTES.jwks
        ? "application/jwk-set+json; charset=utf-8"
        : "application/json; charset=utf-8",
    ...DOCUMENT_HEADERS,
  };
}

// OpenID Connect requires POST at these endpoints. Browsers send no cookies with cross-site forms, but they do with
// the redirect that follows.
async function redirectForm(
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const query = (await readPairs(request)).toString();
  if (query.length > QUERY_CHARACTERS_MAX) {
    throw new OAuthError(
      413,
      "invalid_request",
      `the query exceeds ${QUERY_CHARACTERS_MAX} characters`,
    );
  }
  response
    .writeHead(303, {
      Location: `${path}?${query}`,
      ...NO_STORE,
      "Content-Length": 0,
    })
    .end();
}

function setHeaders(response: ServerResponse, headers: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
}

function refuseMethod(response: ServerResponse, path: string): OAuthError {
  response.setHeader("Allow", listMethods(path));
  return new OAuthError(405, "invalid_request", "the method is not supported");
}

// Errors of the core are answers; all others are failures.
function readError(error: unknown): OAuthError {
  if (!isCoreError(error)) throw error;
  return new OAuthError(error.statusCode, error.error, error.error_description ?? error.message);
}

// The body has already been read; the core reads this one instead.
function replaceBody(request: IncomingMessage, bytes: Buffer): void {
  request.headers["content-length"] = String(bytes.length);
  delete request.headers["transfer-encoding"];
  Object.defineProperties(request, {
    readable: { value: true },
    iterator: {
      value: async function* readOnce() {
        yield bytes;
      },
    },
  });
}
