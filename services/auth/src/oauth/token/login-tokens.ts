// Tokens of the service's own sign-in, issued through the core's models to the built-in client.
import { PlatformError } from "@platform/kernel/errors";
import type { Provider } from "oidc-provider";
import type { SigningAlgorithm } from "../../database/key.ts";
import type { SessionInfo } from "../../session/session.ts";
import type { Account } from "../../user/account.ts";
import { PLATFORM_CLIENT_ID, TTL_SECONDS } from "../core/lifetimes.ts";
import type { Audiences } from "./audience.ts";
import type { ItemStore } from "./item-store.ts";
import type { Entitlements } from "./entitlements.ts";
import type { TokenPolicy } from "./policy.ts";
import type { RevocationList } from "./revocation-list.ts";
import type { TokenClaimsSource } from "./token-claims.ts";

/** Tokens of a sign-in. */
export interface LoginTokens {
  access_token: string;
  token_type: "Bearer";
  /** Seconds. */
  expires_in: number;
  refresh_token: string;
  scope: string;
}

export interface LoginTokenMintOptions {
  getProvider: () => Provider;
  policy: TokenPolicy;
  claims: TokenClaimsSource;
  items: ItemStore;
  revocations: RevocationList;
  audiences: Audiences;
  entitlements: Entitlements;
  getAlgorithm: () => SigningAlgorithm;
}

export class LoginTokenMint {
  readonly #options: LoginTokenMintOptions;

  constructor(options: LoginTokenMintOptions) {
    this.#options = options;
  }

  /**
   * Issues an access and a refresh token for a session; `scope` limits them. Throws 401 if the session was revoked in
   * the meantime.
   */
  async mint(account: Account, session: SessionInfo, scope?: string): Promise<LoginTokens> {
    const { getProvider, policy, entitlements, claims, items, revocations, audiences } =
      this.#options;
    const { issuer, platform: audience } = audiences;
    const provider = getProvider();
    const client = await provider.Client.find(PLATFORM_CLIENT_ID);
    if (client === undefined) throw new Error("the built-in client is missing");
    const rights = await policy.findUserRights(account.id);
    const asked = scope?.split(" ");
    const scopes = entitlements
      .permitUserScopes(client, rights)
      .filter((name) => asked === undefined || asked.includes(name))
      .join(" ");

    const grant = new provider.Grant({ accountId: account.id, clientId: client.clientId });
    grant.addOIDCScope(scopes);
    grant.addResourceScope(issuer, scopes);
    const grantId = await grant.save();

    const shared = { accountId: account.id, client, grantId, gty: "login", sessionUid: session.id };
    const authTime = Math.floor(session.authTime / 1_000);
    const access = new provider.AccessToken({ ...shared, sid: session.id });
    access.resourceServer = new provider.ResourceServer(issuer, {
      scope: scopes,
      audience,
      accessTokenTTL: TTL_SECONDS.accessToken,
      accessTokenFormat: "jwt",
      jwt: { sign: { alg: this.#options.getAlgorithm() } },
    });
    access.scope = scopes;
    const { acr, amr } = session;
    claims.setAuthentication(access, { sid: session.id, authTime, acr, amr }, rights);
    const refresh = new provider.RefreshToken({
      ...shared,
      acr,
      amr: [...amr],
      authTime,
      resource: issuer,
      rotations: 0,
      scope: scopes,
      sid: session.id,
    });
    const [access_token, refresh_token] = await Promise.all([access.save(), refresh.save()]);

    // A concurrent end of the session deleted only what existed then.
    const isVoid = await revocations.isRevoked({
      jti: access.jti,
      kid: "",
      client_id: client.clientId,
      sid: session.id,
      sub: account.id,
      epoch: account.epoch,
    });
    if (isVoid) {
      await items.revokeGrant(grantId);
      throw new PlatformError("unauthorized", "The session has ended.");
    }
    return {
      access_token,
      token_type: "Bearer",
      expires_in: TTL_SECONDS.accessToken,
      refresh_token,
      scope: scopes,
    };
  }
}
