// Token exchange (RFC 8693): a service exchanges a user's token for one of its own, for calls on behalf of the user.
import type { Clock } from "@platform/kernel/time";
import { errors, type KoaContextWithOIDC, type Provider } from "oidc-provider";
import { hasPermission } from "../../rbac/permission.ts";
import type { Users } from "../../user/users.ts";
import type { CoreClient } from "../core/core-client.ts";
import { TTL_SECONDS } from "../core/lifetimes.ts";
import type { AccessTokenClaims, AccessTokenVerifier, Actor } from "./access-token.ts";
import type { AudienceClient, Audiences } from "./audience.ts";
import type { Entitlements } from "./entitlements.ts";
import type { TokenPolicy } from "./policy.ts";
import type { RevocationList } from "./revocation-list.ts";
import type { TokenClaimsSource } from "./token-claims.ts";

export const TOKEN_EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
/**
 * Permission that clients need in addition to the grant type: administrators allow a client to act for users,
 * registration does not.
 */
export const EXCHANGE_PERMISSION = "tokens:exchange";
/** Parameters of the grant type. */
export const TOKEN_EXCHANGE_PARAMETERS: readonly string[] = [
  "subject_token",
  "subject_token_type",
  "actor_token",
  "actor_token_type",
  "requested_token_type",
  "audience",
  "resource",
  "scope",
];

const ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token";
const BAD_SUBJECT = "the subject token is not valid";
const JWT_TYPE = "urn:ietf:params:oauth:token-type:jwt";
/** Maximum length of a chain of actors. */
const ACTORS_MAX = 4;

/** Options of the exchange. */
export interface TokenExchangeOptions {
  verifier: AccessTokenVerifier;
  policy: TokenPolicy;
  users: Users;
  claims: TokenClaimsSource;
  revocations: RevocationList;
  clock: Clock;
  audiences: Audiences;
  entitlements: Entitlements;
  getAlgorithm: () => "RS256" | "ES256";
}

/**
 * Exchanges tokens. The new token conveys no more than the old one (scope, lifetime, authentication), names the actor
 * (`act`), and is revoked with the session, the user's epoch and the grant of the old one.
 */
export class TokenExchange {
  readonly #options: TokenExchangeOptions;

  constructor(options: TokenExchangeOptions) {
    this.#options = options;
  }

  /** Answers a request of the token endpoint whose client the core has authenticated. */
  async handle(provider: Provider, ctx: KoaContextWithOIDC): Promise<void> {
    const client = ctx.oidc.client as CoreClient;
    const params = readParams(ctx.oidc.params ?? {});
    await this.#requireAllowed(client, ctx);
    requireSupported(params);
    const subject = await this.#verifySubject(params);
    const audience = this.#chooseAudience(client, params, subject.aud);
    const scope = await this.#narrowScope(client, subject, params.get("scope"));
    const actors = subject.act === undefined ? {} : { act: subject.act };
    const act: Actor = { sub: client.clientId, ...actors };
    if (countActors(act) > ACTORS_MAX)
      throw new errors.InvalidRequest("the chain of actors is too long");

    const { claims, revocations, clock, audiences } = this.#options;
    // Every token of a user has a grant for as long as it lives.
    const grantId = await revocations.findGrantOf(subject.jti);
    if (grantId === undefined) throw new errors.InvalidRequest(BAD_SUBJECT);
    const nowSeconds = Math.floor(clock.now() / 1_000);
    const expiresIn = Math.min(TTL_SECONDS.accessToken, subject.exp - nowSeconds);
    const token = new provider.AccessToken({
      accountId: subject.sub,
      client,
      gty: TOKEN_EXCHANGE_GRANT,
      expiresIn,
      grantId,
      ...(subject.sid === undefined ? {} : { sessionUid: subject.sid, sid: subject.sid }),
    });
    token.resourceServer = new provider.ResourceServer(audiences.issuer, {
      scope,
      audience,
      accessTokenTTL: expiresIn,
      accessTokenFormat: "jwt",
      jwt: { sign: { alg: this.#options.getAlgorithm() } },
    });
    token.scope = scope;
    // The core would compute the expiry at signing time, slightly after that of the subject token.
    Object.assign(token, { exp: nowSeconds + expiresIn });
    claims.setAuthentication(token, {
      sid: subject.sid,
      authTime: subject.auth_time,
      acr: subject.acr,
      amr: subject.amr,
      act,
      rolesMax: subject.roles,
    });
    ctx.body = {
      access_token: await token.save(),
      issued_token_type: ACCESS_TOKEN_TYPE,
      token_type: "Bearer",
      expires_in: expiresIn,
      scope,
    };
  }

  async #requireAllowed(client: CoreClient, ctx: KoaContextWithOIDC): Promise<void> {
    const { permissions } = await this.#options.policy.findClientRights(client.clientId);
    if (client.clientAuthMethod === "none" || !hasPermission(permissions, EXCHANGE_PERMISSION)) {
      throw new errors.UnauthorizedClient(`the client lacks the permission ${EXCHANGE_PERMISSION}`);
    }
    if (ctx.get("DPoP") !== "" || client.dpopBoundAccessTokens === true) {
      throw new errors.InvalidRequest("exchanged tokens cannot be bound to a key");
    }
  }

  // The audience of the subject token, or for platform tokens a resource that the client names: never a wider one.
  #chooseAudience(
    client: AudienceClient,
    params: ReadonlyMap<string, string>,
    before: string,
  ): string {
    const { audiences } = this.#options;
    const resource = params.get("resource");
    const chosen = resource === undefined ? before : audiences.choose(client, resource);
    const isWider = chosen !== before && before !== audiences.platform;
    const isUnallowed =
      chosen === audiences.platform &&
      audiences.choose(client, audiences.platformResource) === undefined;
    if (chosen === undefined || isWider || isUnallowed) throw new errors.InvalidTarget();
    if ((params.get("audience") ?? chosen) !== chosen) throw new errors.InvalidTarget();
    return chosen;
  }

  async #verifySubject(params: ReadonlyMap<string, string>): Promise<AccessTokenClaims> {
    const type = params.get("subject_token_type");
    if (type !== ACCESS_TOKEN_TYPE && type !== JWT_TYPE) {
      throw new errors.InvalidRequest("subject_token_type must be the access token type");
    }
    const verified = await this.#options.verifier.verify(params.get("subject_token") ?? "");
    const claims = verified?.claims;
    // A key-bound token without its key is a stolen token.
    if (claims === undefined || claims.cnf !== undefined) {
      throw new errors.InvalidRequest(BAD_SUBJECT);
    }
    const account = await this.#options.users.find(claims.sub);
    if (account === undefined || account.disabled) {
      throw new errors.InvalidRequest("the subject token does not belong to a user");
    }
    return claims;
  }

  async #narrowScope(
    client: CoreClient,
    subject: AccessTokenClaims,
    asked: string | undefined,
  ): Promise<string> {
    const held = new Set(subject.scope?.split(" "));
    const rights = await this.#options.policy.findUserRights(subject.sub);
    const possible = this.#options.entitlements
      .permitUserScopes(client, rights)
      .filter((name) => held.has(name));
    const wanted = asked === undefined ? possible : asked.split(" ");
    const granted = possible.filter((name) => wanted.includes(name) && name !== "offline_access");
    if (granted.length === 0)
      throw new errors.InvalidScope("no requested scope may be exchanged", asked ?? "");
    return granted.join(" ");
  }
}

function requireSupported(params: ReadonlyMap<string, string>): void {
  if (params.has("actor_token") || params.has("actor_token_type")) {
    throw new errors.InvalidRequest("the client itself is the actor: actor_token is not supported");
  }
  const wanted = params.get("requested_token_type") ?? ACCESS_TOKEN_TYPE;
  if (wanted !== ACCESS_TOKEN_TYPE && wanted !== JWT_TYPE) {
    throw new errors.InvalidRequest("requested_token_type must be the access token type");
  }
}

function readParams(params: Readonly<Record<string, unknown>>): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(params).flatMap(([name, value]) =>
      typeof value === "string" ? [[name, value] as const] : [],
    ),
  );
}

function countActors(actor: Actor | undefined): number {
  return actor === undefined ? 0 : 1 + countActors(actor.act);
}
