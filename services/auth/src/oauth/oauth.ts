// The OAuth 2.0 and OpenID Connect core.
import { hkdfSync } from "node:crypto";
import type { EgressFetch } from "@platform/kernel/egress";
import type { Claims } from "@platform/kernel/identity";
import type { Logger } from "@platform/kernel/log";
import { every, sweepEvery, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { Adapter, Provider } from "oidc-provider";
import type { SigningAlgorithm } from "../database/key.ts";
import type { AuthDatabase } from "../database/schema.ts";
import type { KeyRing, Rotation } from "../key/key-ring.ts";
import type { LiveSecret, SecretBox } from "@platform/kernel/secrets";
import type { Rbac, Rights } from "../rbac/rights.ts";
import type { Sessions } from "../session/sessions.ts";
import type { Users } from "../user/users.ts";
import type { SessionResolver } from "../web/session-resolver.ts";
import { Consents } from "./authorization/consents.ts";
import { Grants } from "./authorization/grants.ts";
import { Interactions } from "./authorization/interaction.ts";
import type { NeedsSecondFactor } from "./authorization/prompt-policy.ts";
import { ClientLogos } from "./client/client-logos.ts";
import { ClientRegistry } from "./client/client-registry.ts";
import { ClientStore } from "./client/client-store.ts";
import { CLI_CLIENT_ID, PLATFORM_CLIENT_ID } from "./core/lifetimes.ts";
import { OAuthDispatcher } from "./endpoint/dispatcher.ts";
import { TokenEndpoints } from "./endpoint/token-endpoints.ts";
import type { ClientCache } from "./provider/core-models.ts";
import { readCoreRequest, readGranted } from "./provider/core-request.ts";
import type { OAuthPages } from "./provider/pages.ts";
import { buildProvider, type ProviderOptions } from "./provider/provider.ts";
import { AccessTokenVerifier } from "./token/access-token.ts";
import { Audiences } from "./token/audience.ts";
import { Entitlements } from "./token/entitlements.ts";
import { ItemStore } from "./token/item-store.ts";
import { LoginTokenMint } from "./token/login-tokens.ts";
import { LogoutNotices } from "./token/logout-notices.ts";
import { TokenPolicy } from "./token/policy.ts";
import { createRefreshRotation } from "./token/refresh-rotation.ts";
import { RevocationList } from "./token/revocation-list.ts";
import { Revoker } from "./token/revoker.ts";
import { TokenClaimsSource } from "./token/token-claims.ts";
import { TokenExchange } from "./token/token-exchange.ts";
import { toKernelClaims } from "./token/verified-claims.ts";

const POLL_MS = 1_000;
const SWEEP_MS = 60_000;
const SECRET_BYTES = 32;

/** Options of the OAuth core. */
export interface OAuthOptions {
  /** Issuer and base of all URLs; no path. */
  issuer: string;
  algorithm: SigningAlgorithm;
  /** Audience of access tokens for the platform's services. */
  audience: string;
  /** Claim `tenant` of users and clients without a tenant. */
  defaultTenant?: string | undefined;
  /** Bearer token of services that follow the revocation feed. */
  feedToken?: LiveSecret | undefined;
  /** Secrets of the installation's clients, by client id: while one is replaced, its former value is accepted as well. */
  providedSecrets: ReadonlyMap<string, LiveSecret>;
  /** Clients that must use PKCE: `public` exempts those that authenticate. */
  pkce: "all" | "public";
  /**
   * The secret of the installation, 32 bytes or more, the same on every node: keys of cookies and refresh tokens are
   * derived from it.
   */
  secret: Uint8Array;
  database: AuthDatabase;
  box: SecretBox;
  /** Must be started. */
  keys: KeyRing;
  clock: Clock;
  log: Logger;
  users: Users;
  sessions: Sessions;
  resolver: SessionResolver;
  rbac: Rbac;
  /** Fetches addresses that clients chose. */
  egressFetch: EgressFetch;
  /** Called for every access token that was issued, by grant type. */
  onTokenIssued?: (grant: string) => void;
  pages: OAuthPages;
  needsSecondFactor: NeedsSecondFactor;
}

/** The OAuth core, started by `OAuth.start`. */
export class OAuth {
  /** Registered clients. */
  readonly clients: ClientRegistry;
  /** Logos of clients. */
  readonly logos: ClientLogos;
  /** Grants of users to clients. */
  readonly grants: Grants;
  /** Authorization requests that wait for the user. */
  readonly interactions: Interactions;
  /** Tokens of the built-in client, for sign-ins. */
  readonly loginTokens: LoginTokenMint;
  readonly revoker: Revoker;
  /** Answers the requests of the core's paths. */
  readonly dispatcher: OAuthDispatcher;
  readonly #keys: KeyRing;
  readonly #policy: TokenPolicy;
  readonly #audiences: Audiences;
  readonly #verifier: AccessTokenVerifier;
  readonly #notices: LogoutNotices;
  readonly #timers: readonly RepeatingTimer[];
  readonly #stopFollowing: () => void;

  /** Starts the core; when this resolves, it accepts requests. */
  static async start(options: OAuthOptions): Promise<OAuth> {
    const policy = new TokenPolicy(options.rbac, options.clock);
    await policy.refresh();
    const oauth = new OAuth(options, policy);
    await oauth.clients.reportKeptAudiences(options.log);
    return oauth;
  }

  private constructor(options: OAuthOptions, policy: TokenPolicy) {
    const { issuer, audience, secret, database, box, keys, clock, log, sessions } = options;
    this.#keys = keys;
    this.#policy = policy;
    const audiences = new Audiences({ issuer, platform: audience });
    const notices = new LogoutNotices(log);
    const revocations = new RevocationList(database, clock);
    const rotation = createRefreshRotation(derive(secret, "refresh successors"), clock);
    const shared = {
      ...options,
      policy,
      audiences,
      entitlements: new Entitlements({ policy, audiences }),
      notices,
      revocations,
      rotation,
      getProvider: (): Provider => this.dispatcher.provider,
      getAlgorithm: (): SigningAlgorithm => keys.current.active.algorithm,
    };
    const items = new ItemStore({ ...shared, getRequest: readCoreRequest });
    const verifier = new AccessTokenVerifier(shared);
    const consents = new Consents(database, clock);
    const revoker = new Revoker({ ...shared, items });
    const claims = new TokenClaimsSource({
      ...shared,
      hasGrant: async (grantId) => (await items.read("Grant", grantId)) !== undefined,
    });
    const clientCache: ClientCache = new Map();
    const clients = new ClientStore({
      database,
      box,
      clock,
      getScopes: () => policy.scopePermissions,
      getGranted: readGranted,
      revoke: (clientId) => revoker.revokeClient(clientId),
      onChange: (clientId) => clientCache.delete(clientId),
    });
    this.clients = new ClientRegistry({ ...shared, clients });
    this.logos = new ClientLogos({ database, clock });
    this.grants = new Grants({ ...shared, items, consents, revoker });
    this.interactions = new Interactions({ ...shared, consents });
    this.loginTokens = new LoginTokenMint({ ...shared, items, claims });
    this.revoker = revoker;
    this.#audiences = audiences;
    this.#verifier = verifier;
    this.#notices = notices;

    const providerOptions: ProviderOptions = {
      ...shared,
      adapter: (model) => chooseAdapter(model, clients, items),
      clientCache,
      clients,
      interactions: this.interactions,
      claims,
      exchange: new TokenExchange({ ...shared, verifier, claims }),
      cookieSecret: derive(secret, "oauth cookies"),
      endSession: async (sid) => {
        await revoker.revokeSession(sid);
        await sessions.end(sid);
      },
    };
    this.dispatcher = new OAuthDispatcher({
      ...shared,
      endpoints: new TokenEndpoints({ ...shared, verifier, items, claims }),
      userinfo: { ...shared, verifier, items },
      getScopes: () => policy.scopeNames,
      build: () => buildProvider(providerOptions, keys.current),
      onTokenIssued: options.onTokenIssued ?? (() => {}),
      onSignOut: async (sid) => {
        await revoker.revokeSession(sid, { isToldByCore: true });
        await sessions.end(sid);
      },
    });

    this.#stopFollowing = keys.onChange(() => this.dispatcher.rebuild());
    this.#timers = [
      every(
        POLL_MS,
        () => this.#followScopes(),
        (error) => log.error("reading the scopes failed", { error }),
      ),
      sweepEvery(
        SWEEP_MS,
        {
          items: () => items.sweep(),
          revocations: () => revocations.sweep(),
          consents: () => consents.sweep(),
        },
        (error, sweep) => log.error("deleting expired items failed", { error, sweep }),
      ),
    ];
  }

  /**
   * The claims of a valid access token for the platform's services; checks signature, audience, times, deny-list,
   * session and epoch.
   */
  async verifyAccessToken(token: string): Promise<Claims | undefined> {
    const verified = await this.#verifier.verify(token);
    return verified?.claims.aud === this.#audiences.platform ? toKernelClaims(verified) : undefined;
  }

  /** Limits a caller's rights to those that their token conveys. */
  limitRights({ scope, all }: Claims, rights: Rights): Rights {
    const clientId = all["client_id"];
    const isBuiltIn = clientId === PLATFORM_CLIENT_ID || clientId === CLI_CLIENT_ID;
    return this.#policy.limit(rights, scope, isBuiltIn);
  }

  /** Rotates the signing keys; an immediate rotation revokes what the given key has signed. */
  async rotateKeys(rotation: Rotation): Promise<{ kid: string }> {
    const made = await this.#keys.rotate(rotation);
    if (rotation.mode === "immediate" && rotation.revokeKid !== undefined) {
      await this.revoker.revokeKey(rotation.revokeKid);
    }
    return made;
  }

  /** Reads keys and scopes immediately instead of within a second. */
  async refresh(): Promise<void> {
    await this.#keys.refresh();
    await this.#followScopes();
  }

  /** Stops the timers and waits for runs and logout notices in flight. */
  async close(): Promise<void> {
    this.#stopFollowing();
    await Promise.all(this.#timers.map((timer) => timer.stop()));
    await this.#notices.close();
  }

  async #followScopes(): Promise<void> {
    if (await this.#policy.refresh()) this.dispatcher.rebuild();
  }
}

function derive(secret: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", `platform-auth ${purpose}`, SECRET_BYTES));
}

function chooseAdapter(model: string, clients: ClientStore, items: ItemStore): Adapter {
  return model === "Client" ? clients.createAdapter() : items.createAdapter(model);
}
