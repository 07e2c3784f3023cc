// One client at one identity provider: discovery, authorization code with PKCE, refresh and sign-out.
import { createRetryLaterError, PlatformError } from "@platform/kernel/errors";
import { parseJwt } from "@platform/kernel/identity";
import type { Clock } from "@platform/kernel/time";
import * as oauth from "oauth4webapi";

const DISCOVERY_AGE_MS = 600_000;
const REQUEST_TIMEOUT_MS = 10_000;

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
}

/** Secrets of one sign-in, kept in the browser's sealed cookie. */
export interface SignInSecrets {
  state: string;
  nonce: string;
  verifier: string;
}

/** The outcome of a sign-in or a refresh. */
export interface UserTokens {
  claims: Record<string, unknown>;
  /** Lifetime of the access token in seconds; undefined if the provider does not say. */
  expiresIn: number | undefined;
  refreshToken: string | undefined;
  idToken: string | undefined;
}

/** One client at one identity provider. */
export class OidcProvider {
  readonly #spec: OidcClientSpec;
  readonly #clock: Clock;
  readonly #client: oauth.Client;
  readonly #auth: oauth.ClientAuth;
  #server: { found: Promise<oauth.AuthorizationServer>; atMs: number } | undefined;

  constructor(spec: OidcClientSpec, clock: Clock) {
    this.#spec = spec;
    this.#clock = clock;
    this.#client = { client_id: spec.clientId };
    this.#auth =
      spec.clientSecret === undefined ? oauth.None() : oauth.ClientSecretBasic(spec.clientSecret);
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
        this.#auth,
        checked,
        redirectUri,
        secrets.verifier,
        this.#options(),
      );
      const result = await oauth.processAuthorizationCodeResponse(server, this.#client, response, {
        expectedNonce: secrets.nonce,
        requireIdToken: true,
      });
      await oauth.validateApplicationLevelSignature(server, response, this.#options());
      return readTokens(server, result);
    });
  }

  /** Gets new tokens. Throws `forbidden` if the session has ended at the provider, `unavailable` if it does not answer. */
  async refresh(refreshToken: string): Promise<UserTokens> {
    const server = await this.#discover();
    return explain(async () => {
      const response = await oauth.refreshTokenGrantRequest(
        server,
        this.#client,
        this.#auth,
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
        this.#auth,
        refreshToken,
        this.#options(),
      );
      await oauth.processRevocationResponse(response);
    });
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

  #options() {
    return {
      signal: () => AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      [oauth.allowInsecureRequests]: this.#spec.isInsecureAllowed,
    };
  }
}

function requireEndpoint(
  server: oauth.AuthorizationServer,
  name: "authorization_endpoint",
): string {
  const endpoint = server[name];
  if (endpoint !== undefined) return endpoint;
  throw new PlatformError("unavailable", `The identity provider has no ${name}.`);
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
    claims: {
      ...(isOwn ? { ...access?.payload, kid: access?.kid } : {}),
      ...identity,
    },
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
