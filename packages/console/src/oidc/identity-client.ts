// The console's client at identity: authorization code with PKCE, renewal and end of sessions.
import { createRetryLaterError, PlatformError } from "@platform/kernel/errors";
import {
  createBoundedFetch,
  createTokenVerifier,
  EVERY_SCOPE,
  parseJwt,
  type TokenVerifier,
} from "@platform/kernel/identity";
import { toLiveSecret, type LiveSecret, type Secret } from "@platform/kernel/secrets";
import type { Clock } from "@platform/kernel/time";
import * as oauth from "oauth4webapi";
import type { EndedSessions, Grant, IdentityTokens } from "../session/session.ts";

const DISCOVERY_AGE_MS = 600_000;
/** A sign-in asks for scopes that have just been added; strangers who begin many make few requests of it. */
const SIGN_IN_AGE_MS = 250;
const REQUEST_TIMEOUT_MS = 10_000;
const fetchBounded = createBoundedFetch(1_048_576, "identity's response");
/** Access tokens are renewed this long before they expire. */
const RENEW_AHEAD_MS = 60_000;
const LIFETIME_DEFAULT_S = 300;
/** Member of `events` that makes a token a logout token. */
const LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout";
/** Tolerated difference of the clocks when a recent sign-in is required. */
const SKEW_S = 30;

/** The client, as identity has registered it. */
export interface IdentityClientOptions {
  issuer: string;
  clientId: string;
  clientSecret: Secret;
  scopes: readonly string[];
  redirectUri: string;
  /** Address at which this process reaches the issuer; default: the issuer. */
  internalUrl?: string | undefined;
  clock: Clock;
}

/** A sign-in that waits for its callback. */
export interface PendingSignIn {
  state: string;
  nonce: string;
  verifier: string;
  /** Path of the page to which the browser returns. */
  to: string;
  /** True if the user must have signed in again. */
  isFresh: boolean;
  /** Epoch ms. */
  expiresMs: number;
}

export class IdentityClient {
  readonly #options: IdentityClientOptions;
  readonly #client: oauth.Client;
  readonly #secret: LiveSecret;
  #server: { found: Promise<oauth.AuthorizationServer>; atMs: number } | undefined;
  #logoutVerifier: { verifier: TokenVerifier; keysUrl: string } | undefined;

  constructor(options: IdentityClientOptions) {
    this.#options = options;
    this.#client = { client_id: options.clientId };
    this.#secret = toLiveSecret(options.clientSecret);
  }

  get #auth(): oauth.ClientAuth {
    return oauth.ClientSecretBasic(this.#secret.value);
  }

  /** The address that the browser is sent to. `prompt` is that of OpenID Connect. */
  async begin(pending: PendingSignIn, prompt: "none" | "login" | undefined): Promise<string> {
    const server = await this.#discover(SIGN_IN_AGE_MS);
    const url = new URL(server.authorization_endpoint ?? "");
    const { clientId, redirectUri, scopes } = this.#options;
    const parameters = {
      client_id: clientId,
      response_type: "code",
      redirect_uri: redirectUri,
      scope: [...scopes, ...findNamed(scopes, server.scopes_supported)].join(" "),
      state: pending.state,
      nonce: pending.nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(pending.verifier),
      code_challenge_method: "S256",
      ...(prompt === undefined ? {} : { prompt }),
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return url.href;
  }

  /** Exchanges the code of a callback. Throws `forbidden` if identity or a check refuses the sign-in. */
  async finish(callback: URLSearchParams, pending: PendingSignIn): Promise<Grant> {
    const server = await this.#discover();
    const { redirectUri, clock } = this.#options;
    return explain(async () => {
      const checked = oauth.validateAuthResponse(server, this.#client, callback, pending.state);
      const response = await oauth.authorizationCodeGrantRequest(
        server,
        this.#client,
        this.#auth,
        checked,
        redirectUri,
        pending.verifier,
        this.#request(),
      );
      const result = await oauth.processAuthorizationCodeResponse(server, this.#client, response, {
        expectedNonce: pending.nonce,
        requireIdToken: true,
      });
      await oauth.validateApplicationLevelSignature(server, response, this.#request());
      const claims = oauth.getValidatedIdTokenClaims(result)!;
      const authTime = claims.auth_time ?? claims.iat;
      if (pending.isFresh && authTime * 1_000 < pending.expiresMs - PENDING_MS - SKEW_S * 1_000) {
        throw new PlatformError("forbidden", "Identity did not ask for a new sign-in.");
      }
      return createGrant(this.#readTokens(result, undefined), claims, authTime * 1_000, clock);
    });
  }

  /** Renews tokens. Throws `forbidden` if the session has ended at identity, `unavailable` if it does not answer. */
  async renew(tokens: IdentityTokens): Promise<IdentityTokens> {
    const { refreshToken } = tokens;
    if (refreshToken === undefined) throw new PlatformError("forbidden", "The token has expired.");
    const server = await this.#discover();
    return explain(async () => {
      const response = await oauth.refreshTokenGrantRequest(
        server,
        this.#client,
        this.#auth,
        refreshToken,
        this.#request(),
      );
      const result = await oauth.processRefreshTokenResponse(server, this.#client, response);
      return this.#readTokens(result, tokens);
    });
  }

  /** Revokes the refresh token; returns the address at which the browser ends its session at identity. */
  async end(tokens: IdentityTokens, returnTo: string): Promise<string | null> {
    const server = await this.#discover();
    if (tokens.refreshToken !== undefined) {
      const response = await oauth.revocationRequest(
        server,
        this.#client,
        this.#auth,
        tokens.refreshToken,
        this.#request(),
      );
      await oauth.processRevocationResponse(response);
    }
    if (server.end_session_endpoint === undefined) return null;
    const url = new URL(server.end_session_endpoint);
    url.searchParams.set("client_id", this.#options.clientId);
    url.searchParams.set("post_logout_redirect_uri", returnTo);
    // With it identity does not ask the user again.
    if (tokens.idToken !== undefined) url.searchParams.set("id_token_hint", tokens.idToken);
    return url.href;
  }

  /**
   * Verifies a logout token and returns the sessions that it ends (OpenID Connect Back-Channel Logout 1.0 section 2.6).
   * Throws `bad_request` if it is not one of the issuer for this client.
   */
  async readLogout(token: string): Promise<EndedSessions> {
    const verifier = await this.#findLogoutVerifier();
    const verdict = await verifier.verify(token);
    if (verdict.kind === "refused" && verdict.code === "keys_unavailable") {
      throw createRetryLaterError("unavailable", verdict.detail, 5);
    }
    const { nonce, events } = verdict.kind === "user" ? verdict.claims.all : {};
    const isLogout = typeof events === "object" && events !== null && LOGOUT_EVENT in events;
    if (verdict.kind !== "user" || !isLogout || nonce !== undefined) throw wrongLogoutToken();
    const { sub, sid } = verdict.claims;
    if (sub === undefined && sid === undefined) throw wrongLogoutToken();
    return { sub, sid };
  }

  async #findLogoutVerifier(): Promise<TokenVerifier> {
    const { jwks_uri: address } = await this.#discover();
    const { issuer, internalUrl, clientId, clock } = this.#options;
    const url = new URL(address ?? "").href;
    const keysUrl = internalUrl === undefined ? url : replaceOrigin(url, issuer, internalUrl);
    if (this.#logoutVerifier?.keysUrl !== keysUrl) {
      const verifier = createTokenVerifier({
        clock,
        jwks: { url: keysUrl },
        profile: { kind: "unbound" },
        issuer,
        audience: clientId,
        cacheMax: 0,
      });
      this.#logoutVerifier = { verifier, keysUrl };
    }
    return this.#logoutVerifier.verifier;
  }

  #readTokens(
    result: oauth.TokenEndpointResponse,
    before: IdentityTokens | undefined,
  ): IdentityTokens {
    const lifetimeMs = (result.expires_in ?? LIFETIME_DEFAULT_S) * 1_000;
    return {
      accessToken: result.access_token,
      refreshToken: result.refresh_token ?? before?.refreshToken,
      idToken: result.id_token ?? before?.idToken,
      renewAtMs: this.#options.clock.now() + Math.max(lifetimeMs / 2, lifetimeMs - RENEW_AHEAD_MS),
    };
  }

  // Shared by concurrent sign-ins; a failure is not kept.
  #discover(ageMsMax = DISCOVERY_AGE_MS): Promise<oauth.AuthorizationServer> {
    const now = this.#options.clock.monotonicMs();
    const known = this.#server;
    if (known !== undefined && now - known.atMs < ageMsMax) return known.found;
    const found = explain(async () => {
      const issuer = new URL(this.#options.issuer);
      const response = await oauth.discoveryRequest(issuer, this.#request());
      const server = await oauth.processDiscoveryResponse(issuer, response);
      if (server.authorization_endpoint !== undefined) return server;
      throw new PlatformError("unavailable", "Identity has no authorization endpoint.");
    });
    this.#server = { found, atMs: now };
    found.catch(() => {
      if (this.#server?.found === found) this.#server = undefined;
    });
    return found;
  }

  #request() {
    const { issuer, internalUrl } = this.#options;
    return {
      signal: () => AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      [oauth.allowInsecureRequests]: true,
      [oauth.customFetch]: (url: string, init: object) =>
        fetchBounded(
          internalUrl === undefined ? url : replaceOrigin(url, issuer, internalUrl),
          init,
        ),
    };
  }
}

/** Scopes for one thing that a sign-in asks for: its address has a bound. */
const NAMED_MAX = 60;
/** Time in which a sign-in must return from identity. */
export const PENDING_MS = 300_000;

function createGrant(
  tokens: IdentityTokens,
  identity: oauth.IDToken,
  authenticatedMs: number,
  clock: Clock,
): Grant {
  const name = readAccessToken(tokens)["username"] ?? identity["preferred_username"];
  const { sid } = identity as { sid?: unknown };
  return {
    method: "oidc",
    user: { id: identity.sub, name: typeof name === "string" ? name : identity.sub },
    ...readRights(tokens),
    credentials: new Map(),
    tokens,
    subject: { sub: identity.sub, sid: typeof sid === "string" ? sid : undefined },
    authenticatedMs: Math.min(authenticatedMs, clock.now()),
  };
}

/** Rights that an access token contains: they change with each renewal. */
export function readRights(
  tokens: IdentityTokens,
): Pick<Grant, "isAdmin" | "permissions" | "roles"> {
  const { scope, roles } = readAccessToken(tokens);
  const permissions = typeof scope === "string" ? scope.split(" ") : [];
  const list = Array.isArray(roles) ? roles.filter((role) => typeof role === "string") : [];
  return {
    isAdmin: permissions.includes(EVERY_SCOPE),
    permissions,
    roles: list,
  };
}

/** Epoch ms at which the access token was issued; 0 if it does not say so. */
export function readIssueTime(tokens: IdentityTokens): number {
  const issued = readAccessToken(tokens)["iat"];
  return typeof issued === "number" ? issued * 1_000 : 0;
}

// Read only for display: the token came from identity directly, and services verify it.
function readAccessToken({ accessToken }: IdentityTokens): Readonly<Record<string, unknown>> {
  return parseJwt(accessToken)?.payload ?? {};
}

/** Scopes for one thing alone, `data:read:NAME`, of which the console asks for the one for all. */
function findNamed(asked: readonly string[], supported: readonly string[] = []): string[] {
  const named = supported.filter((scope) => {
    const parts = scope.split(":");
    return parts.length === 3 && asked.includes(parts.slice(0, 2).join(":"));
  });
  return named.slice(0, NAMED_MAX);
}

function wrongLogoutToken(): PlatformError {
  return new PlatformError("bad_request", "The logout token is not valid.");
}

function replaceOrigin(url: string, issuer: string, internalUrl: string): string {
  const origin = new URL(issuer).origin;
  return url.startsWith(`${origin}/`) ? `${internalUrl}${url.slice(origin.length)}` : url;
}

/** Turns failures of the library into errors that may be shown to the user. */
async function explain<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof PlatformError) throw cause;
    if (cause instanceof oauth.AuthorizationResponseError) {
      throw new PlatformError("forbidden", "Identity refused the sign-in.", {
        fields: { oauth_error: cause.error },
        cause,
      });
    }
    if (cause instanceof oauth.ResponseBodyError && cause.status < 500) {
      throw new PlatformError("forbidden", "Identity refused the sign-in.", { cause });
    }
    if (
      cause instanceof oauth.OperationProcessingError &&
      cause.code !== oauth.RESPONSE_IS_NOT_CONFORM
    ) {
      throw new PlatformError("forbidden", "The answer of identity is not valid.", { cause });
    }
    throw createRetryLaterError("unavailable", "Identity does not answer.", 5);
  }
}
