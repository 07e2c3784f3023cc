// Claims and scopes of access tokens, added while the core issues them.
import type { Clock } from "@platform/kernel/time";
import type { JWTStructured, KoaContextWithOIDC } from "oidc-provider";
import type { Rights } from "../../rbac/rights.ts";
import type { Sessions } from "../../session/sessions.ts";
import type { Users } from "../../user/users.ts";
import { createGoneError } from "../core/core-errors.ts";
import type { Actor } from "./access-token.ts";
import type { AudienceClient } from "./audience.ts";
import type { Entitlements, TokenSubject } from "./entitlements.ts";
import type { TokenPolicy } from "./policy.ts";
import type { RevocationList } from "./revocation-list.ts";
import { CLAIMS_OF_SCOPE } from "./user-claims.ts";

/** The authentication of a token's user. */
export interface Authentication {
  sid: string | undefined;
  /** Seconds since 1970. */
  authTime: number | undefined;
  acr?: string | undefined;
  amr?: readonly string[] | undefined;
  /** The acting party if it is not the client itself. */
  act?: Actor;
  /** Roles of the token that it was exchanged for; the new one has no others. */
  rolesMax?: readonly string[];
  /** Claims that the client has requested for userinfo by name. */
  requested?: readonly string[];
}

/** The core's token, reduced to the members used here. */
interface IssuedToken {
  kind: string;
  jti: string;
  exp?: number;
  client: AudienceClient;
  accountId?: string;
  grantId?: string;
  sessionUid?: string;
}

interface TokenSource {
  authTime?: number | undefined;
  acr?: string | undefined;
  amr?: readonly string[] | undefined;
  /** The parameter `claims` of the authorization request. */
  claims?: { userinfo?: Record<string, unknown> | undefined } | undefined;
}

/** Completes tokens; shared by all providers. */
export class TokenClaimsSource {
  readonly #policy: TokenPolicy;
  readonly #entitlements: Entitlements;
  readonly #users: Users;
  readonly #revocations: RevocationList;
  readonly #clock: Clock;
  readonly #sessions: Sessions;
  readonly #defaultTenant: string | undefined;
  readonly #hasGrant: (grantId: string) => Promise<boolean>;
  readonly #authentications = new WeakMap<object, Authentication>();
  readonly #rights = new WeakMap<object, Promise<Rights>>();

  constructor(options: {
    policy: TokenPolicy;
    entitlements: Entitlements;
    users: Users;
    revocations: RevocationList;
    clock: Clock;
    sessions: Sessions;
    /** Claim `tenant` of users and clients without a tenant. */
    defaultTenant?: string | undefined;
    hasGrant: (grantId: string) => Promise<boolean>;
  }) {
    this.#policy = options.policy;
    this.#entitlements = options.entitlements;
    this.#users = options.users;
    this.#revocations = options.revocations;
    this.#clock = options.clock;
    this.#sessions = options.sessions;
    this.#defaultTenant = options.defaultTenant;
    this.#hasGrant = options.hasGrant;
  }

  /**
   * Sets the authentication of a token that is issued outside of a request, and the user's rights if they are known.
   */
  setAuthentication(token: object, authentication: Authentication, rights?: Rights): void {
    this.#authentications.set(token, authentication);
    if (rights !== undefined) this.#rights.set(token, Promise.resolve(rights));
  }

  /**
   * Scopes that may be issued in this request: those of the client that the subject's roles permit. A machine that
   * requests none gets all of them.
   */
  async permitScopes(ctx: KoaContextWithOIDC, client: AudienceClient): Promise<string[]> {
    const { params } = ctx.oidc;
    if (params?.["grant_type"] === "client_credentials") {
      const rights = await this.#policy.findClientRights(client.clientId);
      const permitted = this.#entitlements.permitClientScopes(client, rights);
      if (params["scope"] === undefined && permitted.length > 0)
        params["scope"] = permitted.join(" ");
      return permitted;
    }
    const userId = ctx.oidc.entities.Account?.accountId ?? ctx.oidc.session?.accountId;
    const rights = userId === undefined ? undefined : await this.#findUserRights(ctx, userId);
    return this.#entitlements.permitUserScopes(client, rights);
  }

  /** Adds claims to a token before it is signed, and records it under its grant. */
  async complete(
    ctx: KoaContextWithOIDC | undefined,
    token: object,
    jwt: JWTStructured,
  ): Promise<void> {
    const issued = token as IssuedToken;
    if (issued.accountId === undefined) {
      const rights = await this.#policy.findClientRights(issued.client.clientId);
      Object.assign(jwt.payload, {
        ...this.#settle(issued, jwt, "client", rights),
        tenant: this.#defaultTenant,
        policy_version: rights.policyVersion,
      });
      return;
    }
    const account = await this.#users.find(issued.accountId);
    if (account === undefined || account.disabled) throw createGoneError();
    const rights = await this.#findUserRights(ctx ?? token, account.id);
    const authentication = this.#readAuthentication(ctx, issued);
    const { sid, authTime, acr, amr, act, rolesMax } = authentication;
    Object.assign(jwt.payload, {
      sid,
      session_exp: await this.#findSessionEnd(sid),
      username: account.username,
      ...this.#settle(issued, jwt, "user", limitRoles(rights, rolesMax)),
      tenant: account.tenant ?? this.#defaultTenant,
      policy_version: rights.policyVersion,
      epoch: account.epoch,
      auth_time: authTime,
      acr,
      amr,
      act,
    });
    await this.#noteIssued(issued, authentication.requested ?? []);
  }

  #settle(
    { client }: IssuedToken,
    { payload }: JWTStructured,
    subject: TokenSubject,
    rights: Rights,
  ): { aud: string; roles: readonly string[] } {
    const { aud, scope } = payload as { aud: string; scope?: string };
    const draft = { client, subject, rights, audience: aud, scope };
    const { audience, roles } = this.#entitlements.settle(draft);
    return { aud: audience, roles };
  }

  // Credentials that a service derives from a token, such as keys of storage, must not outlive the session.
  async #findSessionEnd(sid: string | undefined): Promise<number | undefined> {
    const session = sid === undefined ? undefined : await this.#sessions.find(sid);
    return session === undefined ? undefined : Math.floor(session.expiresAt / 1_000);
  }

  #readAuthentication(
    ctx: KoaContextWithOIDC | undefined,
    token: IssuedToken,
  ): Partial<Authentication> {
    const given = this.#authentications.get(token);
    if (given !== undefined) return given;
    const { authTime, acr, amr, claims } = findSource(ctx);
    return {
      ...(token.sessionUid === undefined ? {} : { sid: token.sessionUid }),
      ...(authTime === undefined ? {} : { authTime }),
      acr,
      amr,
      requested: Object.keys(claims?.userinfo ?? {}),
    };
  }

  // Recorded before the grant is checked: a concurrent revocation deletes the grant before it reads the records.
  async #noteIssued({ jti, grantId, exp }: IssuedToken, claims: readonly string[]): Promise<void> {
    if (grantId === undefined) return;
    await this.#revocations.noteIssued({
      jti,
      grantId,
      claims: claims.filter((name) => KNOWN_CLAIMS.has(name)),
      expiresAt: exp === undefined ? this.#clock.now() + 3_600_000 : exp * 1_000,
    });
    if (!(await this.#hasGrant(grantId))) throw createGoneError();
  }

  #findUserRights(request: object, userId: string): Promise<Rights> {
    const known = this.#rights.get(request);
    if (known !== undefined) return known;
    const rights = this.#policy.findUserRights(userId);
    this.#rights.set(request, rights);
    return rights;
  }
}

function limitRoles(rights: Rights, max: readonly string[] | undefined): Rights {
  if (max === undefined) return rights;
  return { ...rights, roles: rights.roles.filter((role) => max.includes(role)) };
}

// The source that the token is issued for.
function findSource(ctx: KoaContextWithOIDC | undefined): TokenSource {
  const { AuthorizationCode, RefreshToken, DeviceCode } = ctx?.oidc.entities ?? {};
  return AuthorizationCode ?? RefreshToken ?? DeviceCode ?? {};
}

const KNOWN_CLAIMS: ReadonlySet<string> = new Set(Object.values(CLAIMS_OF_SCOPE).flat());
