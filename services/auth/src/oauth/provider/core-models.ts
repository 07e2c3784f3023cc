// Changes to the core's models: their classes are public, and single methods are overridden.
import type { LiveSecret } from "@platform/kernel/secrets";
import type { Clock } from "@platform/kernel/time";
import { errors, Provider, type Configuration, type KoaContextWithOIDC } from "oidc-provider";
import type { ClientStore } from "../client/client-store.ts";
import { BOUND_MEMBER, isBoundToken, type MarkedToken } from "../core/bound-tokens.ts";
import { GRANTED_MEMBER, type CoreClient } from "../core/core-client.ts";
import { isReplayError } from "../core/core-errors.ts";
import { TTL_SECONDS } from "../core/lifetimes.ts";
import { readProofId } from "../token/dpop-proof.ts";
import type { LogoutNotices } from "../token/logout-notices.ts";
import type { RefreshRotation } from "../token/refresh-rotation.ts";
import { fetchUnknownKeys } from "./client-keys.ts";

const CLIENT_MS = 1_000;
const CLIENTS_MAX = 10_000;

/** Reads of clients that began within the last second, by id. Changes on this node remove the read. */
export type ClientCache = Map<string, ClientRead>;

interface ClientRead {
  provider: Provider;
  client: Promise<CoreClient | undefined>;
  until: number;
}

/** Options of the models. */
export interface ModelOptions {
  clientCache: ClientCache;
  /** Secrets of the installation's clients, by client id. */
  providedSecrets: ReadonlyMap<string, LiveSecret>;
  clients: Pick<ClientStore, "acceptsFormer">;
  rotation: RefreshRotation;
  notices: LogoutNotices;
  clock: Clock;
  /** Cookie of the core's session. */
  sessionCookie: SessionCookie;
}

/** A cookie of the core. */
export interface SessionCookie {
  name: string;
  attributes: CookieAttributes;
}

type CookieAttributes = NonNullable<NonNullable<Configuration["cookies"]>["long"]>;

/** Changes the models of a provider before its first request. */
export function adaptModels(provider: Provider, options: ModelOptions): void {
  adoptSessions(provider);
  nameSessions(provider);
  sendNewSessions(provider, options.sessionCookie);
  keepGranted(provider);
  markBoundTokens(provider);
  rememberClients(provider, options);
  acceptFormerSecrets(provider, options);
  refuseRepeatedProofs(provider);
  tellPatiently(provider, options.notices);
  deriveSuccessors(provider, options.rotation);
}

interface SecretHolder {
  clientId: string;
  clientSecret?: string;
  compareClientSecret: (this: SecretHolder, given: string) => Promise<boolean> | boolean;
}

// The core has one secret for each client. For a client of the installation, one that an administrator has set since is the
// only one that counts, with the one before it.
function acceptFormerSecrets(provider: Provider, { providedSecrets, clients }: ModelOptions): void {
  const prototype = provider.Client.prototype as unknown as SecretHolder;
  const { compareClientSecret } = prototype;
  prototype.compareClientSecret = async function compare(given) {
    const secret = providedSecrets.get(this.clientId);
    if (secret?.accepts(this.clientSecret ?? "") === true) return secret.accepts(given);
    if (await compareClientSecret.call(this, given)) return true;
    return clients.acceptsFormer(this.clientId, given);
  };
}

interface CoreSession {
  uid: string;
  loginAccount: (this: CoreSession, details: unknown) => void;
  ensureClientContainer: (this: CoreSession, clientId: string) => void;
  sidFor: (this: CoreSession, clientId: string, value?: string) => string | undefined;
}

// The core's session gets the `sid` of the service's session that the user signed in with.
function adoptSessions(provider: Provider): void {
  const prototype = provider.Session.prototype as unknown as CoreSession;
  const { loginAccount } = prototype;
  prototype.loginAccount = function signIn(details) {
    loginAccount.call(this, details);
    const sid = readLoginSid(Provider.ctx);
    if (sid !== undefined) this.uid = sid;
  };
  prototype.ensureClientContainer = function nameSession(clientId) {
    if (this.sidFor(clientId) === undefined) this.sidFor(clientId, this.uid);
  };
}

interface NewSession {
  id: string;
  exp?: number;
  persist: (this: NewSession) => Promise<string>;
  save: (this: NewSession, ttlSeconds: number) => Promise<string>;
}

// The core's form of the device flow, shown again after an error, begins a session after the core has sent the cookies of
// new ones, and then fails because the session was never stored.
function sendNewSessions(provider: Provider, { name, attributes }: SessionCookie): void {
  const prototype = provider.Session.prototype as unknown as NewSession;
  const { persist } = prototype;
  prototype.persist = function persistOrBegin() {
    if (this.exp !== undefined) return persist.call(this);
    Provider.ctx?.oidc.cookies.set(name, this.id, attributes);
    return this.save(TTL_SECONDS.session);
  };
}

interface NamedClient {
  backchannelLogoutSessionRequired?: boolean;
  includeSid: (this: NamedClient) => boolean;
}

// The core does so only with a `backchannel_logout_uri`, which a client on this machine does not have: its sign-out
// (`id_token_hint`) names the session all the same.
function nameSessions(provider: Provider): void {
  const prototype = provider.Client.prototype as unknown as NamedClient;
  prototype.includeSid = function isNamed() {
    return this.backchannelLogoutSessionRequired === true;
  };
}

// The core stores only members that a token's class lists.
function keepGranted(provider: Provider): void {
  const { InitialAccessToken } = provider as unknown as {
    InitialAccessToken: { IN_PAYLOAD: string[] };
  };
  const kept = [...InitialAccessToken.IN_PAYLOAD, GRANTED_MEMBER];
  Object.defineProperty(InitialAccessToken, "IN_PAYLOAD", { get: () => kept });
}

// RFC 9449 section 5: refresh tokens of confidential clients are not bound to a key, so that the key can change. The
// tokens issued with them are bound: a refresh without a proof must not turn them into bearer tokens.
function markBoundTokens(provider: Provider): void {
  const RefreshToken = provider.RefreshToken as unknown as {
    IN_PAYLOAD: string[];
    prototype: MarkedToken & { save: (this: MarkedToken, ttl?: number) => Promise<string> };
  };
  const kept = [...RefreshToken.IN_PAYLOAD, BOUND_MEMBER];
  Object.defineProperty(RefreshToken, "IN_PAYLOAD", { get: () => kept });
  const { save } = RefreshToken.prototype;
  RefreshToken.prototype.save = function mark(ttl) {
    const { AccessToken: access, RotatedRefreshToken: rotated } = Provider.ctx?.oidc.entities ?? {};
    const isBound =
      (access as { jkt?: string } | undefined)?.jkt !== undefined || isBoundToken(rotated);
    if (isBound) this[BOUND_MEMBER] = true;
    return save.call(this, ttl);
  };
}

/** Called by the core during a refresh: throws `invalid_dpop_proof` if the tokens are bound and there is no proof. */
export function requireProof(ctx: KoaContextWithOIDC): void {
  if (isBoundToken(ctx.oidc.entities.RefreshToken) && ctx.get("DPoP") === "")
    throw new errors.InvalidDpopProof("refreshing DPoP-bound tokens requires a proof");
}

// The core reads the client from the store and hashes its metadata with every request. Concurrent requests share one
// read; unknown clients are not remembered.
function rememberClients(provider: Provider, { clientCache, clock }: ModelOptions): void {
  const Client = provider.Client as { find: (id: string) => Promise<CoreClient | undefined> };
  const find = Client.find.bind(Client);
  const load = async (id: string): Promise<CoreClient | undefined> => {
    const client = await find(id);
    if (client?.jwksUri !== undefined) fetchUnknownKeys(client.asymmetricKeyStore, clock);
    return client;
  };
  Client.find = async (id) => {
    const now = clock.monotonicMs();
    const known = clientCache.get(id);
    if (known !== undefined && known.provider === provider && now < known.until)
      return known.client;
    const read: ClientRead = { provider, client: load(id), until: now + CLIENT_MS };
    if (clientCache.size >= CLIENTS_MAX) clientCache.clear();
    clientCache.set(id, read);
    const forget = (): void => {
      if (clientCache.get(id) === read) clientCache.delete(id);
    };
    const client = await read.client.catch((error: unknown) => {
      forget();
      throw error;
    });
    if (client === undefined) forget();
    return client;
  };
}

// RFC 9449 section 5: a repeated proof is an invalid proof; the core reports an invalid grant.
function refuseRepeatedProofs(provider: Provider): void {
  const replays = provider.ReplayDetection as {
    unique: (issuer: string, jti: string, exp: number) => Promise<boolean>;
  };
  const unique = replays.unique.bind(replays);
  replays.unique = async (issuer, jti, exp) => {
    const isNew = await unique(issuer, jti, exp).catch((error: unknown) => {
      if (isReplayError(error)) return false;
      throw error;
    });
    if (!isNew && readProofId(Provider.ctx?.get("DPoP")) === jti)
      throw new errors.InvalidDpopProof("the DPoP proof was already used");
    return isNew;
  };
}

interface TellableClient {
  clientId: string;
  backchannelLogout: (this: TellableClient, accountId: string, sid?: string) => Promise<void>;
}

// The core sends a logout notice once, without retries.
function tellPatiently(provider: Provider, notices: LogoutNotices): void {
  const prototype = provider.Client.prototype as unknown as TellableClient;
  const { backchannelLogout } = prototype;
  prototype.backchannelLogout = function tell(accountId, sid) {
    return notices.tell(this.clientId, () => backchannelLogout.call(this, accountId, sid));
  };
}

function readLoginSid(ctx: KoaContextWithOIDC | undefined): string | undefined {
  const login = ctx?.oidc.entities.Interaction?.result?.["login"];
  const sid = typeof login === "object" && login !== null && "sid" in login ? login.sid : undefined;
  return typeof sid === "string" ? sid : undefined;
}

function deriveSuccessors(provider: Provider, rotation: RefreshRotation): void {
  const prototype = provider.RefreshToken.prototype as unknown as {
    generateTokenId: (this: object) => string;
  };
  const { generateTokenId } = prototype;
  prototype.generateTokenId = function nameToken() {
    const rotated = Provider.ctx?.oidc.entities.RotatedRefreshToken?.jti;
    return rotated === undefined ? generateTokenId.call(this) : rotation.deriveSuccessor(rotated);
  };
}
