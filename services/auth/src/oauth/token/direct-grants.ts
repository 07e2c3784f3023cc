// The grants client_credentials and refresh_token without the core's pipeline, for requests that it would grant. A
// request with any irregularity is left to the core, which checks it again and describes the error.
import { errors, type Provider } from "oidc-provider";
import type { SigningAlgorithm } from "../../database/key.ts";
import type { Rights } from "../../rbac/rights.ts";
import type { Account } from "../../user/account.ts";
import type { Users } from "../../user/users.ts";
import { isBoundToken } from "../core/bound-tokens.ts";
import type { CoreClient } from "../core/core-client.ts";
import { TTL_SECONDS } from "../core/lifetimes.ts";
import type { Audiences } from "./audience.ts";
import type { Entitlements } from "./entitlements.ts";
import type { TokenPolicy } from "./policy.ts";
import type { RefreshRotation } from "./refresh-rotation.ts";
import type { TokenClaimsSource } from "./token-claims.ts";
import { describeAccount } from "./user-claims.ts";

/** Options of the grants. */
export interface DirectGrantsOptions {
  policy: TokenPolicy;
  entitlements: Entitlements;
  audiences: Audiences;
  claims: TokenClaimsSource;
  users: Users;
  rotation: RefreshRotation;
  getAlgorithm: () => SigningAlgorithm;
}

/** A token response (RFC 6749 section 5.1); members without a value are not sent. */
export interface TokenResponse {
  access_token: string;
  /** Remaining lifetime of the access token in seconds. */
  expires_in: number;
  id_token?: string | undefined;
  refresh_token?: string | undefined;
  scope: string | undefined;
  token_type: string;
}

/** A token request whose client has been authenticated by a secret, or has none. */
export interface DirectRequest {
  provider: Provider;
  client: CoreClient;
  /** Of the form, none of them repeated or empty. */
  params: ReadonlyMap<string, string>;
}

type CoreRefreshToken = InstanceType<Provider["RefreshToken"]>;
type PlainRefreshToken = CoreRefreshToken & { grantId: string; gty: string; scope: string };
type CoreGrant = InstanceType<Provider["Grant"]>;

/** A refresh token that may be used, with everything that its successor depends on. */
interface UsableRefresh {
  old: PlainRefreshToken;
  grant: CoreGrant;
  account: Account;
  rights: Rights;
  resource: string;
  audience: string;
  /** Scopes of the new access token before the user's roles and the grant are considered. */
  scopes: ReadonlySet<string>;
}

// RFC 6749 section 3.3.
const SCOPE_PATTERN = /^[\x21\x23-\x5B\x5D-\x7E]+(?: [\x21\x23-\x5B\x5D-\x7E]+)*$/;
const REFRESH_GRANT = "refresh_token";

/** Grants tokens; shared by all providers. */
export class DirectGrants {
  readonly #options: DirectGrantsOptions;

  constructor(options: DirectGrantsOptions) {
    this.#options = options;
  }

  /**
   * The response to a request; `undefined` if the core has to answer it, which has had no effect. Throws an error of the
   * core if a concurrent request has used or revoked the refresh token.
   */
  async grant(request: DirectRequest): Promise<TokenResponse | undefined> {
    const { client, params } = request;
    const type = params.get("grant_type");
    const isBound =
      client["dpopBoundAccessTokens"] === true ||
      client["tlsClientCertificateBoundAccessTokens"] === true;
    if (type === undefined || isBound || !client.grantTypeAllowed(type)) return undefined;
    const scope = params.get("scope");
    if (scope !== undefined && !SCOPE_PATTERN.test(scope)) return undefined;
    switch (type) {
      case "client_credentials":
        return this.#grantClient(request);
      case REFRESH_GRANT: {
        const usable = await this.#findUsable(request);
        return usable === undefined ? undefined : this.#refresh(request, usable);
      }
      default:
        return undefined;
    }
  }

  async #grantClient({
    provider,
    client,
    params,
  }: DirectRequest): Promise<TokenResponse | undefined> {
    const { policy, entitlements, audiences } = this.#options;
    const resource = params.get("resource") ?? audiences.issuer;
    if (client.clientAuthMethod === "none" || !isResource(resource)) return undefined;
    const audience = entitlements.chooseAudience(client, resource);
    if (audience === undefined) return undefined;
    const rights = await policy.findClientRights(client.clientId);
    const permitted = entitlements.permitClientScopes(client, rights);
    // Without a scope, a machine gets all that it may have.
    const asked = params.get("scope")?.split(" ") ?? permitted;
    if (exceedsClient(client, asked, policy.scopeNames)) return undefined;
    const token = new provider.ClientCredentials({ client });
    token.resourceServer = this.#describeResource(provider, resource, audience, permitted);
    token.scope = [...new Set(asked)].filter((name) => permitted.includes(name)).join(" ");
    const access_token = await token.save();
    const { expiration: expires_in, tokenType: token_type } = token;
    return { access_token, expires_in, scope: token.scope || undefined, token_type };
  }

  async #findUsable({
    provider,
    client,
    params,
  }: DirectRequest): Promise<UsableRefresh | undefined> {
    const { policy, entitlements, users } = this.#options;
    const value = params.get("refresh_token");
    if (value === undefined) return undefined;
    const old = await provider.RefreshToken.find(value, { ignoreExpiration: true });
    if (old === undefined || old.clientId !== client.clientId || !isPlain(old)) return undefined;
    const resource = params.get("resource") ?? old.resource;
    if (typeof resource !== "string" || resource !== old.resource) return undefined;
    const scopes = new Set(params.get("scope")?.split(" ") ?? old.scopes);
    if (!scopes.isSubsetOf(old.scopes)) return undefined;
    const grant = await provider.Grant.find(old.grantId, { ignoreExpiration: true });
    const isOurs =
      grant?.clientId === client.clientId && grant.accountId === old.accountId && !grant.isExpired;
    if (grant === undefined || !isOurs) return undefined;
    const account = await users.find(old.accountId);
    if (account === undefined || account.disabled) return undefined;
    const audience = entitlements.chooseAudience(client, resource);
    if (audience === undefined) return undefined;
    const rights = await policy.findUserRights(account.id);
    return { old, grant, account, rights, resource, audience, scopes };
  }

  async #refresh(request: DirectRequest, usable: UsableRefresh): Promise<TokenResponse> {
    const { provider, client } = request;
    const { old, grant, resource, audience, rights, scopes } = usable;
    const permitted = this.#options.entitlements.permitUserScopes(client, rights);
    await old.consume();
    const refresh = this.#succeed(request, old);
    const refresh_token = await refresh.save();
    const { accountId, grantId, sid, sessionUid, expiresWithSession } = old;
    const access = new provider.AccessToken({
      accountId,
      client,
      expiresWithSession,
      grantId,
      gty: refresh.gty ?? REFRESH_GRANT,
      sessionUid,
      sid,
    });
    access.resourceServer = this.#describeResource(provider, resource, audience, permitted);
    const wanted = [...scopes].filter((name) => permitted.includes(name));
    access.scope = grant.getResourceScopeFiltered(resource, wanted);
    const { authTime, acr, amr, claims } = old;
    const requested = Object.keys(claims?.userinfo ?? {});
    this.#options.claims.setAuthentication(
      access,
      { sid: sessionUid, authTime, acr, amr, requested },
      rights,
    );
    return {
      access_token: await access.save(),
      expires_in: access.expiration,
      id_token: await this.#issueIdToken(request, usable),
      refresh_token,
      scope: old.scope === "" ? access.scope || undefined : access.scope,
      token_type: access.tokenType,
    };
  }

  #succeed({ provider, client }: DirectRequest, old: PlainRefreshToken): CoreRefreshToken {
    const { accountId, acr, amr, authTime, claims, expiresWithSession, iiat, grantId, gty } = old;
    const { nonce, resource, scope, sessionUid, sid, rotations, jti } = old;
    return new provider.RefreshToken({
      accountId,
      acr,
      amr,
      authTime,
      claims,
      client,
      expiresWithSession,
      iiat,
      grantId,
      gty: gty !== "" && !gty.endsWith(REFRESH_GRANT) ? `${gty} ${REFRESH_GRANT}` : gty,
      nonce,
      resource,
      rotations: typeof rotations === "number" ? rotations + 1 : 1,
      scope,
      sessionUid,
      sid,
      jti: this.#options.rotation.deriveSuccessor(jti),
    });
  }

  // OpenID Connect Core section 12.2.
  async #issueIdToken(
    { provider, client }: DirectRequest,
    { old, grant, account, scopes }: UsableRefresh,
  ): Promise<string | undefined> {
    if (!scopes.has("openid")) return undefined;
    const { acr, amr, authTime } = old;
    const available = { ...describeAccount(account), acr, amr, auth_time: authTime };
    const token = new provider.IdToken(available, { client });
    Object.assign(token, {
      scope: grant.getOIDCScopeFiltered(new Set(scopes)),
      mask: {},
      rejected: grant.getRejectedOIDCClaims(),
    });
    token.set("nonce", old.nonce);
    token.set("sid", old.sid);
    return token.issue({ use: "idtoken" });
  }

  #describeResource(
    provider: Provider,
    resource: string,
    audience: string,
    permitted: readonly string[],
  ): InstanceType<Provider["ResourceServer"]> {
    return new provider.ResourceServer(resource, {
      scope: permitted.join(" "),
      audience,
      accessTokenTTL: TTL_SECONDS.accessToken,
      accessTokenFormat: "jwt",
      jwt: { sign: { alg: this.#options.getAlgorithm() } },
    });
  }
}

/** True for errors of the core that a client may read. */
export function isCoreError(error: unknown): error is errors.OIDCProviderError {
  return error instanceof errors.OIDCProviderError && error.expose;
}

// RFC 8707 section 2: an absolute URI without a fragment.
function isResource(resource: string): boolean {
  const href = URL.parse(resource)?.href;
  return href !== undefined && !href.includes("#");
}

// The core rejects existing scopes outside of the client's list, and leaves out scopes that do not exist.
function exceedsClient(
  client: CoreClient,
  asked: readonly string[],
  existing: ReadonlySet<string>,
): boolean {
  if (!client.scope) return false;
  const allowed = client.scope.split(" ");
  return asked.some((name) => existing.has(name) && !allowed.includes(name));
}

// Neither used nor expired, not bound to a key, and without requested claims in the ID token.
function isPlain(token: CoreRefreshToken): token is PlainRefreshToken {
  const { consumed, claims } = token as { consumed?: unknown } & CoreRefreshToken;
  return (
    consumed === undefined &&
    !token.isExpired &&
    !token.isSenderConstrained() &&
    !isBoundToken(token) &&
    token.rar === undefined &&
    token.grantId !== undefined &&
    token.gty !== undefined &&
    token.scope !== undefined &&
    Object.keys(claims?.id_token ?? {}).length === 0
  );
}
