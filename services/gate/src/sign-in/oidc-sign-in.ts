// Sign-in of browser users: begin, callback, refresh and sign-out, for all clients of the active routes.
import { createHash, randomBytes } from "node:crypto";
import { PlatformError, toPlatformError } from "@platform/kernel/errors";
import { parseJwt } from "@platform/kernel/identity";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import {
  type BrowserSession,
  describeOidcClient,
  PENDING_COOKIE,
  type RefreshOutcome,
  seal,
  SECURE_COOKIE,
  SIGN_IN_PATH,
  unseal,
} from "../shared-state/index.ts";
import type { AccessControl } from "../access/access-control.ts";
import { checkUser, readClaims } from "./session-claims.ts";
import {
  createLogoutFault,
  type OidcClientSpec,
  OidcProvider,
  type SignInSecrets,
  type UserTokens,
} from "./oidc-provider.ts";

/** Time that a user has for a sign-in, in seconds. */
export const SIGN_IN_SECONDS = 600;
const SESSION_ID_BYTES = 18;
/** Providers in use; beyond it all are created again on demand. */
const PROVIDERS_MAX = 256;
/** Refreshed sessions whose outcome is kept for requests that still carry the previous cookie. */
const REFRESHED_MAX = 1_000;
const REFRESHED_KEPT_MS = 60_000;
/** Assumed lifetime of an access token if the provider does not say. */
const FRESH_SECONDS_DEFAULT = 300;
/** An ID token above this size is not kept: it is only a hint. */
const ID_TOKEN_CHARACTERS_MAX = 4_096;
const TARGET_CHARACTERS_MAX = 2_048;
/** Logout tokens that are remembered until they expire; beyond it the oldest is forgotten. */
const LOGOUTS_MAX = 10_000;
const LOGOUT_ID_CHARACTERS_MAX = 1_024;
/** Clock skew between the provider and this machine. */
const SKEW_SECONDS = 30;
const AUDIENCES_MAX = 16;
/** A sign-in that waits for its callback, as the browser keeps it in a sealed cookie. */
interface PendingSignIn extends SignInSecrets {
  client: string;
  target: string;
  redirectUri: string;
  /** Seconds since 1970. */
  expiresAt: number;
}

export interface OidcSignInOptions {
  /** Finds a client of the active routes. */
  findClient: (client: string) => OidcClientSpec | undefined;
  access: Pick<AccessControl, "cookieKeys" | "keepCookieKeys" | "endSessions">;
  clock: Clock;
  log: Logger;
}

/** Signs browser users in and out. */
export class OidcSignIn {
  readonly #options: OidcSignInOptions;
  readonly #providers = new Map<string, OidcProvider>();
  /** Logout tokens that were used, with the time in seconds until which they are valid. */
  readonly #logouts = new Map<string, number>();
  readonly #refreshed = new Map<string, { outcome: Promise<RefreshOutcome>; atMs: number }>();

  constructor(options: OidcSignInOptions) {
    this.#options = options;
  }

  /** Begins a sign-in: the address of the provider, and the cookie of the callback. */
  async begin(
    client: string,
    target: string,
    origin: string,
  ): Promise<{ url: string; cookie: { name: string; value: string } }> {
    await this.#options.access.keepCookieKeys();
    const redirectUri = `${origin}${SIGN_IN_PATH}callback`;
    const { url, secrets } = await this.#findProvider(client).beginSignIn(redirectUri);
    const pending: PendingSignIn = {
      ...secrets,
      client,
      target: checkTarget(target),
      redirectUri,
      expiresAt: this.#readNow() + SIGN_IN_SECONDS,
    };
    const name = namePendingCookie(secrets.state, origin.startsWith("https:"));
    return { url, cookie: { name, value: seal(pending, this.#options.access.cookieKeys, name) } };
  }

  /** Finishes a sign-in. Throws `forbidden` if the callback belongs to no sign-in of this browser. */
  async finish(
    callback: URLSearchParams,
    readCookie: (name: string) => string | undefined,
    isSecure: boolean,
  ): Promise<{ sealed: string; session: BrowserSession; target: string; cookie: string }> {
    const cookie = namePendingCookie(callback.get("state") ?? "", isSecure);
    const pending = this.#readPending(readCookie(cookie), cookie);
    if (pending === undefined) {
      throw new PlatformError(
        "forbidden",
        "This sign-in has expired or was begun in another browser.",
      );
    }
    const { client, target, redirectUri } = pending;
    const provider = this.#findProvider(client);
    const tokens = await provider.finishSignIn(callback, pending, redirectUri);
    const session = this.#createSession(this.#findSpec(client), tokens);
    this.#options.log.info("user signed in", {
      audit: true,
      sub: session.claims["sub"],
      session: session.id,
    });
    return { sealed: this.#seal(session), session, target, cookie };
  }

  /** Renews a session at its provider. Requests with the same cookie share one renewal and its outcome. */
  refresh(client: string, sealed: string): Promise<RefreshOutcome> {
    this.#forgetRefreshed();
    const key = createHash("sha256").update(sealed).digest("base64url");
    const known = this.#refreshed.get(key);
    if (known !== undefined) return known.outcome;
    const outcome = this.#refresh(client, sealed);
    this.#refreshed.set(key, { outcome, atMs: this.#options.clock.monotonicMs() });
    void outcome.then(({ kind }) => kind === "unavailable" && this.#refreshed.delete(key));
    return outcome;
  }

  /** Ends a session at its provider; returns the address there that the browser is sent to, if there is one. */
  async signOut(
    client: string,
    sealed: string,
    returnTo: string | undefined,
  ): Promise<string | undefined> {
    const session = this.#open(client, sealed);
    const provider = this.#findProvider(client);
    if (session !== undefined) await this.#endSession(session);
    try {
      if (session?.refreshToken !== undefined) await provider.revoke(session.refreshToken);
      return await provider.findSignOut(session?.idToken, returnTo);
    } catch (error) {
      // The user is signed out here in any case.
      this.#options.log.warn("cannot end the session at the identity provider", {
        reason: toPlatformError(error).detail,
      });
      return undefined;
    }
  }

  /**
   * Ends the sessions that a logout token names (OpenID Connect Back-Channel Logout 1.0). Throws `bad_request` if it is not
   * valid or was used before, `unavailable` if the keys of its issuer cannot be read.
   */
  async endSessions(token: string): Promise<void> {
    const client = this.#findLogoutClient(token);
    const notice = await this.#findProvider(client).readLogout(token);
    const { sub, sid, jti, issuedAt, expiresAt } = notice;
    const now = this.#readNow();
    const id = JSON.stringify([client, jti]);
    if (id.length > LOGOUT_ID_CHARACTERS_MAX || this.#logouts.has(id)) throw createLogoutFault();
    for (const [known, endsAt] of this.#logouts) {
      if (endsAt > now && this.#logouts.size < LOGOUTS_MAX) break;
      this.#logouts.delete(known);
    }
    this.#logouts.set(id, expiresAt + SKEW_SECONDS);
    try {
      // A session that began later is not meant, even if the notice is late.
      const endedAt = Math.min(now, issuedAt + SKEW_SECONDS);
      const ended = { client, ...(sid === undefined ? { sub } : { sid }), endedAt };
      await this.#options.access.endSessions(ended, "provider");
    } catch (error) {
      this.#logouts.delete(id);
      throw error;
    }
  }

  // A copy of the cookie must not open the session any more.
  async #endSession({ client, id }: BrowserSession): Promise<void> {
    const { access, log } = this.#options;
    try {
      await access.endSessions({ client, sid: id, endedAt: this.#readNow() }, "user");
    } catch (error) {
      log.error("cannot store the end of a session: copies of its cookie remain valid", {
        session: id,
        error: toPlatformError(error).detail,
      });
    }
  }

  #findLogoutClient(token: string): string {
    const { iss, aud } = parseJwt(token)?.payload ?? {};
    const audiences: unknown[] = Array.isArray(aud) ? aud.slice(0, AUDIENCES_MAX) : [aud];
    for (const clientId of audiences) {
      if (typeof iss !== "string" || typeof clientId !== "string") continue;
      const client = describeOidcClient({ issuer: iss, clientId });
      if (this.#options.findClient(client) !== undefined) return client;
    }
    throw createLogoutFault();
  }

  async #refresh(client: string, sealed: string): Promise<RefreshOutcome> {
    const session = this.#open(client, sealed);
    if (session?.refreshToken === undefined) return { kind: "ended" };
    try {
      const tokens = await this.#findProvider(client).refresh(session.refreshToken);
      checkUser(session, tokens);
      return { kind: "renewed", sealed: this.#seal(this.#renewSession(session, tokens)) };
    } catch (error) {
      const { code, detail } = toPlatformError(error);
      const fields = { session: session.id, reason: detail };
      if (code === "forbidden" || code === "not_found") {
        this.#options.log.info("the session of a user has ended at the identity provider", fields);
        return { kind: "ended" };
      }
      this.#options.log.warn("cannot renew the session of a user", fields);
      return { kind: "unavailable" };
    }
  }

  #createSession(spec: OidcClientSpec, tokens: UserTokens): BrowserSession {
    const now = this.#readNow();
    const { claims, accessClaims } = readClaims(tokens, spec.claims, undefined);
    const end = claims["session_exp"];
    const endsAt = now + spec.sessionTtlSeconds;
    return {
      id: randomBytes(SESSION_ID_BYTES).toString("base64url"),
      client: spec.client,
      claims,
      accessClaims,
      signedInAt: now,
      endsAt: typeof end === "number" ? Math.min(end, endsAt) : endsAt,
      ...this.#describeTokens(tokens, undefined),
    };
  }

  #renewSession(session: BrowserSession, tokens: UserTokens): BrowserSession {
    const { claims } = this.#findSpec(session.client);
    return {
      ...session,
      ...readClaims(tokens, claims, session),
      ...this.#describeTokens(tokens, session.refreshToken),
    };
  }

  // A provider that does not rotate refresh tokens sends none.
  #describeTokens({ expiresIn, refreshToken, idToken }: UserTokens, known: string | undefined) {
    const refresh = refreshToken ?? known;
    const hint =
      idToken !== undefined && idToken.length <= ID_TOKEN_CHARACTERS_MAX ? { idToken } : {};
    if (refresh === undefined) return hint;
    const freshUntil = this.#readNow() + (expiresIn ?? FRESH_SECONDS_DEFAULT);
    return { ...hint, refreshToken: refresh, freshUntil };
  }

  #seal(session: BrowserSession): string {
    return seal(session, this.#options.access.cookieKeys, session.client);
  }

  #open(client: string, sealed: string): BrowserSession | undefined {
    return unseal(sealed, this.#options.access.cookieKeys, client) as BrowserSession | undefined;
  }

  #readPending(value: string | undefined, name: string): PendingSignIn | undefined {
    if (value === undefined) return undefined;
    const pending = unseal(value, this.#options.access.cookieKeys, name) as
      | PendingSignIn
      | undefined;
    return pending !== undefined && pending.expiresAt > this.#readNow() ? pending : undefined;
  }

  #findSpec(client: string): OidcClientSpec {
    const spec = this.#options.findClient(client);
    if (spec === undefined) throw new PlatformError("not_found", "No route uses this sign-in.");
    return spec;
  }

  #findProvider(client: string): OidcProvider {
    const spec = this.#findSpec(client);
    const key = JSON.stringify(spec);
    const known = this.#providers.get(key);
    if (known !== undefined) return known;
    if (this.#providers.size >= PROVIDERS_MAX) this.#providers.clear();
    const provider = new OidcProvider(spec, this.#options.clock);
    this.#providers.set(key, provider);
    return provider;
  }

  #forgetRefreshed(): void {
    const now = this.#options.clock.monotonicMs();
    for (const [key, { atMs }] of this.#refreshed) {
      if (now - atMs < REFRESHED_KEPT_MS && this.#refreshed.size < REFRESHED_MAX) return;
      this.#refreshed.delete(key);
    }
  }

  #readNow(): number {
    return Math.floor(this.#options.clock.now() / 1_000);
  }
}

/**
 * Name of the cookie of one sign-in: several can be open in one browser. Over TLS, another host of the same site cannot set
 * it, which would sign the browser in as somebody else.
 */
function namePendingCookie(state: string, isSecure: boolean): string {
  const id = createHash("sha256").update(state).digest("hex").slice(0, 16);
  return `${isSecure ? SECURE_COOKIE : ""}${PENDING_COOKIE}${id}`;
}

/** Only a path of this host: a sign-in must not lead to another site. */
export function checkTarget(target: string): string {
  const isLocal = /^\/(?!\/)/.test(target) && !/[^\x21-\x7e]|\\/.test(target);
  return isLocal && target.length <= TARGET_CHARACTERS_MAX ? target : "/";
}
