// Credentials with which a session calls a service: identity's token, renewed in time, or the service's own.
import { createRetryLaterError, toPlatformError } from "@platform/kernel/errors";
import type { ServiceId } from "../contract.ts";
import { createConsoleError } from "../errors.ts";
import { type IdentityClient, readIssueTime, readRights } from "../oidc/identity-client.ts";
import type { IdentityTokens, Session } from "../session/session.ts";
import type { SessionStore } from "../session/session-store.ts";
import type { Clock } from "@platform/kernel/time";
import type { Target } from "./target.ts";

/** Rights are read again at most this often for a page that asks for them. */
const FRESH_MS = 5_000;

/** Options of {@link SessionCredentials}. */
export interface SessionCredentialsOptions {
  /** Undefined without identity. */
  client: IdentityClient | undefined;
  /** Throws for a service that does not check credentials. */
  requireCredentials: (id: ServiceId) => Promise<void>;
  sessions: SessionStore;
  clock: Clock;
}

/** Credentials of a session that a service has refused. */
export interface RefusedCredentials {
  session: Session;
  target: Target;
  /** Headers that were sent. */
  authorization: Readonly<Record<string, string>>;
}

/** Finds and renews credentials. */
export class SessionCredentials {
  readonly #options: SessionCredentialsOptions;

  constructor(options: SessionCredentialsOptions) {
    this.#options = options;
  }

  /** The headers that authenticate a session at a service; throws 401 if it has no credentials there. */
  async authorize(session: Session, { id, url }: Target): Promise<Record<string, string>> {
    await this.#options.requireCredentials(id);
    const own = session.credentials.get(id);
    if (own?.kind === "bearer") return formatBearer(own.token);
    // The service's console accepts its cookie from its own origin only.
    if (own?.kind === "cookie") {
      return { cookie: own.cookie, origin: url.origin, "sec-fetch-site": "same-origin" };
    }
    if (session.tokens === undefined) throw createConsoleError("not_signed_in_to_service");
    const { accessToken } = await this.#readTokens(session, session.tokens);
    return formatBearer(accessToken);
  }

  /** A service has refused the credentials of a session: they, or the session, end. Returns the error for the page. */
  async forget({ session, target, authorization }: RefusedCredentials): Promise<Error> {
    const { sessions } = this.#options;
    const { id } = session;
    if (session.credentials.has(target.id)) {
      const left = await sessions.update(id, ({ credentials }) => ({
        credentials: new Map([...credentials].filter(([service]) => service !== target.id)),
      }));
      if (left !== undefined && (left.credentials.size > 0 || left.tokens !== undefined)) {
        return createConsoleError("not_signed_in_to_service");
      }
    } else {
      const current = (await sessions.find(id))?.tokens?.accessToken;
      // It was renewed after it had been read for this request.
      if (
        current !== undefined &&
        formatBearer(current).authorization !== authorization["authorization"]
      ) {
        return createRetryLaterError("unavailable", "The sign-in was just renewed; try again.", 1);
      }
    }
    await sessions.end(id);
    return createConsoleError("session_expired");
  }

  /**
   * The session with the rights that its user has now: they are those of a token, which is renewed unless it is a few
   * seconds old. Unchanged if identity does not answer.
   */
  async refresh(session: Session): Promise<Session> {
    const { clock } = this.#options;
    const isDue = ({ tokens }: Pick<Session, "tokens">): boolean =>
      tokens !== undefined && clock.now() - readIssueTime(tokens) > FRESH_MS;
    try {
      return await this.#renew(session, isDue);
    } catch (error) {
      if (toPlatformError(error).status < 500) throw error;
      return session;
    }
  }

  async #readTokens(session: Session, tokens: IdentityTokens): Promise<IdentityTokens> {
    const { clock } = this.#options;
    const renewed = await this.#renew(
      session,
      ({ tokens: held }) => held !== undefined && clock.now() >= held.renewAtMs,
    );
    return renewed.tokens ?? tokens;
  }

  async #renew(session: Session, isDue: (session: Session) => boolean): Promise<Session> {
    const { client, sessions } = this.#options;
    if (client === undefined || session.tokens === undefined || !isDue(session)) return session;
    const before = session.tokens;
    try {
      const renewed = await sessions.renew(session.id, isDue, async (current) => {
        const tokens = await client.renew(current.tokens ?? before);
        return { tokens, ...readRights(tokens) };
      });
      if (renewed?.tokens !== undefined) return renewed;
    } catch (error) {
      if (toPlatformError(error).code !== "forbidden") throw error;
      await sessions.end(session.id);
      throw createConsoleError("session_expired", { cause: error });
    }
    throw createConsoleError("session_expired");
  }
}

function formatBearer(token: string): { authorization: string } {
  return { authorization: `Bearer ${token}` };
}
