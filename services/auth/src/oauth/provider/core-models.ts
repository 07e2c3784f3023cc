// What the core's models do differently here: its classes are public, their methods are taken over one by one.
import type { Clock } from "@platform/kernel/time";
import { errors, Provider, type KoaContextWithOIDC } from "oidc-provider";
import { GRANTED_MEMBER, type CoreClient } from "../core/core-client.ts";
import { isReplayError } from "../core/core-errors.ts";
import { readProofId } from "../token/dpop-proof.ts";
import type { LogoutNotices } from "../token/logout-notices.ts";
import type { RefreshRotation } from "../token/refresh-rotation.ts";

const CLIENT_MS = 1_000;
const CLIENTS_MAX = 10_000;

/** Clients that were asked for within the last second, by id; whoever changes one on this node takes it out. */
export type ClientCache = Map<string, { provider: Provider; client: CoreClient; until: number }>;

const BOUND_MEMBER = "dpopBound";
interface MarkedToken {
  [BOUND_MEMBER]?: boolean;
}

/** What they work with. */
export interface ModelOptions {
  clientCache: ClientCache;
  rotation: RefreshRotation;
  notices: LogoutNotices;
  clock: Clock;
}

/** Changes the models of a provider, which has served nothing yet. */
export function adaptModels(provider: Provider, options: ModelOptions): void {
  adoptSessions(provider);
  keepGranted(provider);
  markBoundTokens(provider);
  rememberClients(provider, options);
  refuseRepeatedProofs(provider);
  tellPatiently(provider, options.notices);
  deriveSuccessors(provider, options.rotation);
}

interface CoreSession {
  uid: string;
  loginAccount: (this: CoreSession, details: unknown) => void;
  ensureClientContainer: (this: CoreSession, clientId: string) => void;
  sidFor: (this: CoreSession, clientId: string, value?: string) => string | undefined;
}

// The core's session takes the `sid` of the service's session that signed the user in.
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

// The core keeps the members of a token that its class names.
function keepGranted(provider: Provider): void {
  const { InitialAccessToken } = provider as unknown as {
    InitialAccessToken: { IN_PAYLOAD: string[] };
  };
  const kept = [...InitialAccessToken.IN_PAYLOAD, GRANTED_MEMBER];
  Object.defineProperty(InitialAccessToken, "IN_PAYLOAD", { get: () => kept });
}

// RFC 9449 section 5: refresh tokens of confidential clients are not bound to a key, so that they may change it. The tokens
// that they bring are bound all the same: without a proof a refresh would turn them into ones for any bearer.
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
      (access as { jkt?: string } | undefined)?.jkt !== undefined ||
      (rotated as MarkedToken | undefined)?.[BOUND_MEMBER] === true;
    if (isBound) this[BOUND_MEMBER] = true;
    return save.call(this, ttl);
  };
}

/** For the core, as it refreshes: throws `invalid_dpop_proof` where the tokens are bound and no proof came. */
export function requireProof(ctx: KoaContextWithOIDC): void {
  const token = ctx.oidc.entities.RefreshToken as MarkedToken | undefined;
  if (token?.[BOUND_MEMBER] === true && ctx.get("DPoP") === "")
    throw new errors.InvalidDpopProof("a refresh of DPoP-bound tokens needs a proof");
}

// The core asks the store, and compares digests of everything it says, at every request of a client.
function rememberClients(provider: Provider, { clientCache, clock }: ModelOptions): void {
  const Client = provider.Client as { find: (id: string) => Promise<CoreClient | undefined> };
  const find = Client.find.bind(Client);
  Client.find = async (id) => {
    const now = clock.monotonicMs();
    const known = clientCache.get(id);
    if (known !== undefined && known.provider === provider && now < known.until)
      return known.client;
    const client = await find(id);
    if (client === undefined) {
      clientCache.delete(id);
      return undefined;
    }
    if (clientCache.size >= CLIENTS_MAX) clientCache.clear();
    clientCache.set(id, { provider, client, until: now + CLIENT_MS });
    return client;
  };
}

// RFC 9449 section 5: a proof that came before is an invalid one; the core says that of the grant.
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
      throw new errors.InvalidDpopProof("the DPoP proof was used before");
    return isNew;
  };
}

interface TellableClient {
  clientId: string;
  backchannelLogout: (this: TellableClient, accountId: string, sid?: string) => Promise<void>;
}

// The core tells clients of a logout once.
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
