// The composition of the OAuth core: stores, policy, the provider in force, the front handler, what others ask of it.
import { hkdfSync } from "node:crypto";
import type { EgressFetch } from "@platform/kernel/egress";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import { Provider } from "oidc-provider";
import type { KeyRing } from "../key/key-ring.ts";
import type { SecretBox } from "../key/secret-box.ts";
import type { SigningAlgorithm } from "../database/key.ts";
import type { Rbac } from "../rbac/rights.ts";
import type { SessionLookup } from "../session/session.ts";
import type { Accounts } from "../user/account.ts";
import { AccessTokenVerifier } from "./token/access-token.ts";
import { Audiences } from "./token/audience.ts";
import { ClientRegistry } from "./client/client-registry.ts";
import { ClientStore } from "./client/client-store.ts";
import { grantedMember } from "./core/core-client.ts";
import { readThumbprint } from "./token/dpop-proof.ts";
import { FrontHandler } from "./endpoint/dispatcher.ts";
import { listGrants } from "./authorization/grants.ts";
import { Interactions } from "./authorization/interaction.ts";
import { ItemStore } from "./token/item-store.ts";
import { LogoutNotices } from "./token/logout-notices.ts";
import { LoginTokenMint } from "./token/login-tokens.ts";
import { Consents } from "./authorization/consents.ts";
import type { OAuthPages } from "./provider/pages.ts";
import { TokenPolicy } from "./token/policy.ts";
import type { OAuth } from "./port.ts";
import type { NeedsSecondFactor } from "./authorization/prompt-policy.ts";
import {
  buildProvider,
  platformClientId,
  ttlSeconds,
  type ProviderParts,
} from "./provider/provider.ts";
import type { ClientCache } from "./provider/core-models.ts";
import { createRefreshRotation } from "./token/refresh-rotation.ts";
import { RevocationList } from "./token/revocation-list.ts";
import { Revoker } from "./token/revoker.ts";
import { findOAuthRoute } from "./core/routes.ts";
import type { AuthDatabase } from "../database/schema.ts";
import type { FindOwnSession } from "./provider/silent-sign-in.ts";
import { TokenClaimsSource } from "./token/token-claims.ts";
import { TokenExchange } from "./token/token-exchange.ts";
import { TokenEndpoints } from "./endpoint/token-endpoints.ts";
import { toKernelClaims } from "./token/verified-claims.ts";

const pollMs = 1_000;
const sweepMs = 60_000;
const secretBytes = 32;

/** What the core is made of. */
export interface OAuthOptions {
  /** Issuer and base of all URLs; no path. */
  issuer: string;
  algorithm: SigningAlgorithm;
  /** Audience of access tokens. */
  audience: string;
  /** Which clients must use PKCE: `public` leaves it to those that authenticate. */
  pkce: "all" | "public";
  /** The service's secret, 32 bytes or more, the same on every node: cookies and successors are derived from it. */
  secret: Uint8Array;
  database: AuthDatabase;
  box: SecretBox;
  keys: KeyRing;
  clock: Clock;
  log: Logger;
  accounts: Accounts;
  sessions: SessionLookup;
  findOwnSession: FindOwnSession;
  rbac: Rbac;
  /** For every address that a client chose. */
  egressFetch: EgressFetch;
  /** Path of the page that signs a user in or asks for consent. */
  interactionPath: (uid: string) => string;
  /** Values of `acr` that sign-ins can reach. */
  acrValues: readonly string[];
  /** Called when a user has signed out at the core, to end the session itself. */
  onSignOut: (sid: string) => Promise<void>;
  /** Called for every access token that was issued, by grant type. */
  onTokenIssued?: (grant: string) => void;
  pages: OAuthPages;
  needsSecondFactor: NeedsSecondFactor;
}

/** Starts the core; when this resolves, it answers. The key ring has been started before. */
export async function createOAuth(options: OAuthOptions): Promise<OAuth> {
  const { issuer, database, box, keys, clock, log, accounts, egressFetch } = options;
  const audiences = new Audiences({
    issuer,
    platform: options.audience,
    ownClientId: platformClientId,
  });
  const policy = new TokenPolicy(options.rbac, clock);
  await policy.refresh();

  const revocations = new RevocationList(database, clock);
  const rotation = createRefreshRotation(derive(options.secret, "refresh successors"), clock);
  const items = new ItemStore({
    database,
    box,
    clock,
    revocations,
    rotation,
    getRequest: readCoreRequest,
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
  const claims = new TokenClaimsSource({
    policy,
    accounts,
    revocations,
    clock,
    hasGrant: async (grantId) => (await items.read("Grant", grantId)) !== undefined,
  });

  const verifier = new AccessTokenVerifier({ keys, revocations, issuer, clock });
  const getAlgorithm = (): SigningAlgorithm => keys.current.active.algorithm;
  const exchange = new TokenExchange({
    verifier,
    policy,
    accounts,
    claims,
    revocations,
    clock,
    audiences,
    accessTokenSeconds: ttlSeconds.accessToken,
    getAlgorithm,
  });

  const notices = new LogoutNotices(log);
  const parts: ProviderParts = {
    issuer,
    audiences,
    pkce: options.pkce,
    algorithm: options.algorithm,
    adapter: (model) => (model === "Client" ? clients.createAdapter() : items.createAdapter(model)),
    clientCache,
    policy,
    accounts,
    sessions: options.sessions,
    findOwnSession: options.findOwnSession,
    agreeSilently: (ctx) => interactions.agreeSilently(ctx),
    rotation,
    claims,
    exchange,
    notices,
    pages: options.pages,
    needsSecondFactor: options.needsSecondFactor,
    clock,
    acrValues: options.acrValues,
    interactionPath: options.interactionPath,
    cookieSecret: derive(options.secret, "oauth cookies"),
    fetch: (url, init) => egressFetch(url, toEgressRequest(init)),
  };
  const getProvider = (): Provider => front.provider;
  const endpoints = new TokenEndpoints({
    getProvider,
    verifier,
    items,
    revocations,
    policy,
    audiences,
    clock,
  });
  const revoker = new Revoker({ getProvider, items, revocations, accounts, clock, notices });
  const front = new FrontHandler({
    issuer,
    endpoints,
    clock,
    userinfo: { verifier, accounts, items, revocations, clock, audiences, getProvider },
    log,
    getScopes: () => policy.scopeNames,
    build: () => buildProvider(parts, keys.current),
    onTokenIssued: options.onTokenIssued ?? (() => {}),
    onSignOut: async (sid) => {
      await revoker.revokeSession(sid, { isToldByCore: true });
      await options.onSignOut(sid);
    },
  });
  const consents = new Consents(database, clock);
  const interactions = new Interactions({
    acrValues: options.acrValues,
    getProvider,
    policy,
    consents,
  });
  const mint = new LoginTokenMint({
    getProvider,
    policy,
    claims,
    items,
    revocations,
    issuer,
    audience: options.audience,
    getAlgorithm,
  });
  await reportKeptAudiences(clients, log);
  const registry = new ClientRegistry({
    getProvider,
    clients,
    policy,
    rbac: options.rbac,
  });

  const stopFollowing = keys.onChange(() => front.rebuild());
  const poll = startTimer(pollMs, "scopes cannot be read", log, async () => {
    if (await policy.refresh()) front.rebuild();
  });
  const sweep = startTimer(sweepMs, "expired items cannot be deleted", log, async () => {
    await items.sweep();
    await revocations.sweep();
    await consents.sweep();
  });

  return {
    handle: (request, response) => front.handle(request, response),
    findRoute: findOAuthRoute,
    mintForLogin: (account, session, scope) => mint.mint(account, session, scope),
    verifyAccessToken: async (token) => {
      const verified = await verifier.verify(token);
      return verified?.claims.aud === audiences.platform ? toKernelClaims(verified) : undefined;
    },
    findInteraction: (request, response) => interactions.find(request, response),
    finishInteraction: (request, response, outcome) =>
      interactions.finish(request, response, outcome),
    revokeSession: (sid) => revoker.revokeSession(sid),
    revokeUser: (userId) => revoker.revokeUser(userId),
    listGrants: (userId) => listGrants(getProvider(), items, consents, userId),
    revokeGrants: async (userId, clientId) => {
      const isForgotten = await consents.forget(userId, clientId);
      const isRevoked = await revoker.revokeGrantsTo(clientId, userId);
      return isForgotten || isRevoked;
    },
    limitRights: ({ scope, all }, rights) =>
      policy.limit(rights, scope, all["client_id"] === platformClientId),
    addClient: (metadata, grantor) => registry.add(metadata, grantor),
    findClient: (clientId) => registry.find(clientId),
    requireClientManageable: (clientId, grantor) => registry.requireManageable(clientId, grantor),
    changeClient: (clientId, changes, grantor) => registry.change(clientId, changes, grantor),
    rotateClientSecret: (clientId, grantor) => registry.rotateSecret(clientId, grantor),
    listClients: (after, limit) => clients.list(after, limit),
    deleteClient: (clientId, grantor) => registry.delete(clientId, grantor),
    createInitialAccessToken: (seconds, grantor) =>
      registry.createInitialAccessToken(seconds, grantor),
    listKeys: () => keys.list(),
    rotateKeys: async (order) => {
      const made = await keys.rotate(order);
      if (order.mode === "immediate" && order.revokeKid !== undefined) {
        await revoker.revokeKey(order.revokeKid);
      }
      return made;
    },
    refresh: async () => {
      await keys.refresh();
      if (await policy.refresh()) front.rebuild();
    },
    close: async () => {
      clearInterval(poll);
      clearInterval(sweep);
      stopFollowing();
      await notices.close();
    },
  };
}

function derive(secret: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", `platform-auth ${purpose}`, secretBytes));
}

// The audience of tokens was the platform's for every client once: administrators decide which of them keep it.
async function reportKeptAudiences(clients: ClientStore, log: Logger): Promise<void> {
  const { ids, count } = await clients.listKeepingAudience();
  if (count === 0) return;
  log.warn(
    "tokens of clients from before the upgrade are good for all services until an administrator sets first_party or platform_audience",
    { count, clients: ids },
  );
}

// Of the initial access token of the request that the core is serving.
function readGranted(): readonly string[] {
  const { InitialAccessToken: token } = Provider.ctx?.oidc.entities ?? {};
  const granted: unknown = (token as Record<string, unknown> | undefined)?.[grantedMember];
  return Array.isArray(granted) ? (granted as string[]) : [];
}

// Of the request that the core is serving; nothing outside of one.
function readCoreRequest(): { clientId: string | undefined; jkt: string | undefined } {
  const ctx = Provider.ctx;
  const proof = ctx?.get("DPoP");
  return {
    clientId: ctx?.oidc.client?.clientId,
    jkt: proof === undefined || proof === "" ? undefined : readThumbprint(proof),
  };
}

function toEgressRequest(init: RequestInit): Parameters<EgressFetch>[1] {
  const { method, headers, body, signal } = init;
  return {
    ...(method === undefined ? {} : { method }),
    headers: new Headers(headers),
    ...(body === undefined || body === null
      ? {}
      : { body: String(body as string | URLSearchParams) }),
    ...(signal === undefined ? {} : { signal }),
  };
}

function startTimer(
  everyMs: number,
  problem: string,
  log: Logger,
  work: () => Promise<void>,
): NodeJS.Timeout {
  let isRunning = false;
  const timer = setInterval(() => {
    if (isRunning) return;
    isRunning = true;
    work()
      .catch((error: unknown) => log.error(problem, { error }))
      .finally(() => {
        isRunning = false;
      });
  }, everyMs);
  return timer.unref();
}
