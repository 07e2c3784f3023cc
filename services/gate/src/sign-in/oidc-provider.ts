// One client at one identity provider: discovery, authorization code with PKCE, refresh and sign-out.
import { createEgress } from "@platform/kernel/egress";
import { createRetryLaterError, PlatformError } from "@platform/kernel/errors";
import {
  createBoundedFetch,
  createTokenVerifier,
  parseJwt,
  type TokenVerifier,
} from "@platform/kernel/identity";
import type { Clock } from "@platform/kernel/time";
import * as oauth from "oauth4webapi";

const DISCOVERY_AGE_MS = 600_000;
const REQUEST_TIMEOUT_MS = 10_000;
const ANSWER_BYTES_MAX = 1_048_576;
/** Time between two reads of the keys because of a signature that none of them verifies. */
const KEYS_AGE_MIN_MS = 10_000;
/** Member of `events` that makes a token a logout token. */
const LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout";

/** A client at an identity provider, as routes with `auth: {type: "oidc"}` describe it. */
export interface OidcClientSpec {
  /** See `describeOidcClient`. */
  client: string;
  issuer: string;
  clientId: string;
  /** Absent: the client is public. */
  clientSecret?: string;
  scopes: readonly string[];
  sessionTtlSeconds: number;
  /** Claims that fields for upstreams use, beside those of the identity fields. */
  claims: readonly string[];
  isInsecureAllowed: boolean;
  /** Networks that the provider may be in beside public addresses; absent: anywhere. */
  networks?: readonly string[];
}

type ProviderFetch = (
  url: string,
  options: oauth.CustomFetchOptions<string, URLSearchParams | undefined>,
) => Promise<Response>;

/** Secrets of one sign-in, kept in the browser's sealed cookie. */
export interface SignInSecrets {
  state: string;
  nonce: string;
  verifier: string;
}

/** The outcome of a sign-in or a refresh. */
export interface UserTokens {
  /** Claims of the ID token; undefined for a refresh without one. */
  identity: Record<string, unknown> | undefined;
  /** Claims of the access token; undefined if it is not a JWT of the provider. */
  access: Record<string, unknown> | undefined;
  /** Lifetime of the access token in seconds; undefined if the provider does not say. */
  expiresIn: number | undefined;
  refreshToken: string | undefined;
  idToken: string | undefined;
}

/** Sessions that a logout token ends: one session of the provider, or all of a user. */
export interface LogoutNotice {
  sub: string | undefined;
  sid: string | undefined;
  jti: string;
  /** Seconds since 1970. */
  issuedAt: number;
  expiresAt: number;
}

/** One client at one identity provider. */
export class OidcProvider {
  readonly #spec: OidcClientSpec;
  readonly #clock: Clock;
  readonly #client: oauth.Client;
  readonly #fetch: ProviderFetch;
  #logoutVerifier: { verifier: TokenVerifier; keysUrl: string } | undefined;
  #keysReadAtMs = -Infinity;
  #server: { found: Promise<oauth.AuthorizationServer>; atMs: number } | undefined;

  constructor(spec: OidcClientSpec, clock: Clock) {
    this.#spec = spec;
    this.#clock = clock;
    this.#client = { client_id: spec.clientId };
    this.#fetch = createProviderFetch(spec.networks);
  }

  /** Creates the address that the browser is sent to. */
  async beginSignIn(redirectUri: string): Promise<{ url: string; secrets: SignInSecrets }> {
    const server = await this.#discover();
    const secrets = {
      state: oauth.generateRandomState(),
      nonce: oauth.generateRandomNonce(),
      verifier: oauth.generateRandomCodeVerifier(),
    };
    const url = new URL(requireEndpoint(server, "authorization_endpoint"));
    const parameters = {
      client_id: this.#spec.clientId,
      response_type: "code",
      redirect_uri: redirectUri,
      scope: this.#spec.scopes.join(" "),
      state: secrets.state,
      nonce: secrets.nonce,
      code_challenge: await oauth.calculatePKCECodeChallenge(secrets.verifier),
      code_challenge_method: "S256",
    };
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
    return { url: url.href, secrets };
  }

  /** Exchanges the code of a callback for tokens. Throws `forbidden` if the provider or a check refuses the sign-in. */
  async finishSignIn(
    callback: URLSearchParams,
    secrets: SignInSecrets,
    redirectUri: string,
  ): Promise<UserTokens> {
    const server = await this.#discover();
    return explain(async () => {
      const checked = oauth.validateAuthResponse(server, this.#client, callback, secrets.state);
      const response = await oauth.authorizationCodeGrantRequest(
        server,
        this.#client,
        this.#readAuth(server),
        checked,
        redirectUri,
        secrets.verifier,
        this.#options(),
      );
      const result = await oauth.processAuthorizationCodeResponse(server, this.#client, response, {
        expectedNonce: secrets.nonce,
        requireIdToken: true,
      });
      await this.#verifySignature(server, response);
      return readTokens(server, result);
    });
  }

  /**
   * Verifies a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.6). Throws `bad_request` if it is not one of
   * the provider for this client, `unavailable` if its keys cannot be read.
   */
  async readLogout(token: string): Promise<LogoutNotice> {
    const verdict = await (await this.#findLogoutVerifier()).verify(token);
    if (verdict.kind === "refused" && verdict.code === "keys_unavailable") {
      throw createRetryLaterError("unavailable", "The identity provider does not answer.", 5);
    }
    if (verdict.kind !== "user") throw createLogoutFault();
    const { nonce, events, jti, iat, exp } = verdict.claims.all;
    const { sub, sid } = verdict.claims;
    const isLogout = typeof events === "object" && events !== null && LOGOUT_EVENT in events;
    const isNamed = sub !== undefined || sid !== undefined;
    if (!isLogout || !isNamed || nonce !== undefined) throw createLogoutFault();
    if (typeof jti !== "string" || typeof iat !== "number" || typeof exp !== "number") {
      throw createLogoutFault();
    }
    return { sub, sid, jti, issuedAt: iat, expiresAt: exp };
  }

  /** Gets new tokens. Throws `forbidden` if the session has ended at the provider, `unavailable` if it does not answer. */
  async refresh(refreshToken: string): Promise<UserTokens> {
    const server = await this.#discover();
    return explain(async () => {
      const response = await oauth.refreshTokenGrantRequest(
        server,
        this.#client,
        this.#readAuth(server),
        refreshToken,
        this.#options(),
      );
      const result = await oauth.processRefreshTokenResponse(server, this.#client, response);
      return readTokens(server, result);
    });
  }

  /** The address that ends the session at the provider; undefined if it has none. */
  async findSignOut(
    idToken: string | undefined,
    returnTo: string | undefined,
  ): Promise<string | undefined> {
    const { end_session_endpoint: endpoint } = await this.#discover();
    if (endpoint === undefined) return undefined;
    const url = new URL(endpoint);
    if (idToken !== undefined) url.searchParams.set("id_token_hint", idToken);
    url.searchParams.set("client_id", this.#spec.clientId);
    if (returnTo !== undefined) url.searchParams.set("post_logout_redirect_uri", returnTo);
    return url.href;
  }

  /** Revokes a refresh token as far as the provider allows it. */
  async revoke(refreshToken: string): Promise<void> {
    const server = await this.#discover();
    if (server.revocation_endpoint === undefined) return;
    await explain(async () => {
      const response = await oauth.revocationRequest(
        server,
        this.#client,
        this.#readAuth(server),
        refreshToken,
        this.#options(),
      );
      await oauth.processRevocationResponse(response);
    });
  }

  // The library reads keys again only after a minute: after a rotation, sign-ins would fail for that long.
  async #verifySignature(server: oauth.AuthorizationServer, response: Response): Promise<void> {
    try {
      await oauth.validateApplicationLevelSignature(server, response, this.#options());
    } catch (cause) {
      const now = this.#clock.monotonicMs();
      if (now - this.#keysReadAtMs < KEYS_AGE_MIN_MS) throw cause;
      this.#keysReadAtMs = now;
      this.#server = undefined;
      // The keys belong to the object of the server.
      const fresh = await this.#discover();
      await oauth.validateApplicationLevelSignature(fresh, response, this.#options());
    }
  }

  async #findLogoutVerifier(): Promise<TokenVerifier> {
    const { jwks_uri: keysUrl } = await this.#discover();
    if (keysUrl === undefined) {
      throw new PlatformError("unavailable", "The identity provider has no jwks_uri.");
    }
    if (this.#logoutVerifier?.keysUrl !== keysUrl) {
      const verifier = createTokenVerifier({
        clock: this.#clock,
        jwks: { url: keysUrl },
        profile: { kind: "unbound" },
        issuer: this.#spec.issuer,
        audience: this.#spec.clientId,
        cacheMax: 0,
      });
      this.#logoutVerifier = { verifier, keysUrl };
    }
    return this.#logoutVerifier.verifier;
  }

  // Shared by concurrent sign-ins; a failure is not kept.
  #discover(): Promise<oauth.AuthorizationServer> {
    const now = this.#clock.monotonicMs();
    const known = this.#server;
    if (known !== undefined && now - known.atMs < DISCOVERY_AGE_MS) return known.found;
    const found = explain(async () => {
      const issuer = new URL(this.#spec.issuer);
      const response = await oauth.discoveryRequest(issuer, this.#options());
      return oauth.processDiscoveryResponse(issuer, response);
    });
    this.#server = { found, atMs: now };
    found.catch(() => {
      if (this.#server?.found === found) this.#server = undefined;
    });
    return found;
  }

  #readAuth(server: oauth.AuthorizationServer): oauth.ClientAuth {
    const { clientSecret } = this.#spec;
    if (clientSecret === undefined) return oauth.None();
    // RFC 8414 section 2: a provider that does not say accepts `client_secret_basic`.
    const { token_endpoint_auth_methods_supported: methods = ["client_secret_basic"] } = server;
    const isInBody =
      !methods.includes("client_secret_basic") && methods.includes("client_secret_post");
    return isInBody ? oauth.ClientSecretPost(clientSecret) : oauth.ClientSecretBasic(clientSecret);
  }

  #options() {
    return {
      signal: () => AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      [oauth.allowInsecureRequests]: this.#spec.isInsecureAllowed,
      [oauth.customFetch]: this.#fetch,
    };
  }
}

function createProviderFetch(networks: readonly string[] | undefined): ProviderFetch {
  if (networks === undefined) {
    return createBoundedFetch(ANSWER_BYTES_MAX, "the identity provider's response");
  }
  const send = createEgress({
    allowedNetworks: networks,
    timeoutMs: REQUEST_TIMEOUT_MS,
    answerBytesMax: ANSWER_BYTES_MAX,
  });
  return (url, { method, headers, body, signal }) =>
    send(url, {
      method,
      headers,
      ...(body === undefined ? {} : { body: String(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
}

function requireEndpoint(
  server: oauth.AuthorizationServer,
  name: "authorization_endpoint",
): string {
  const endpoint = server[name];
  if (endpoint !== undefined) return endpoint;
  throw new PlatformError("unavailable", `The identity provider has no ${name}.`);
}

/** The error of every token that is not a logout token for this client. */
export function createLogoutFault(): PlatformError {
  return new PlatformError("bad_request", "The logout token is not valid.");
}

function readTokens(
  server: oauth.AuthorizationServer,
  result: oauth.TokenEndpointResponse,
): UserTokens {
  const identity = oauth.getValidatedIdTokenClaims(result);
  const access = parseJwt(result.access_token);
  // Many providers put roles and tenant only into the access token, which came from them directly.
  const isOwn = access?.payload["iss"] === server.issuer;
  return {
    identity,
    access: isOwn ? { ...access?.payload, kid: access?.kid } : undefined,
    expiresIn: result.expires_in,
    refreshToken: result.refresh_token,
    idToken: result.id_token,
  };
}

/** Turns failures of the library into errors that may be shown to the user. */
async function explain<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof PlatformError) throw cause;
    if (cause instanceof oauth.AuthorizationResponseError) {
      throw new PlatformError("forbidden", `The identity provider refused: ${cause.error}.`, {
        cause,
      });
    }
    if (cause instanceof oauth.ResponseBodyError) {
      const isRefusal = cause.status < 500 && cause.error !== "temporarily_unavailable";
      if (isRefusal) {
        throw new PlatformError("forbidden", `The identity provider refused: ${cause.error}.`, {
          cause,
        });
      }
    } else if (
      cause instanceof oauth.OperationProcessingError &&
      cause.code !== oauth.RESPONSE_IS_NOT_CONFORM
    ) {
      throw new PlatformError("forbidden", "The identity provider's answer is not valid.", {
        cause,
      });
    }
    throw createRetryLaterError("unavailable", "The identity provider does not answer.", 5);
  }
}
