// Credentials with which a session calls a service: identity's token, renewed in time, or the service's own.
import { toPlatformError } from "@platform/kernel/errors";
import type { ServiceId } from "../contract.ts";
import { createConsoleError } from "../guard/errors.ts";
import type { IdentityClient } from "../oidc/identity-client.ts";
import type { IdentityTokens, Session } from "../session/session.ts";
import type { Sessions } from "../session/sessions.ts";
import type { Clock } from "@platform/kernel/time";
import type { Target } from "./target.ts";

/** Options of {@link SessionCredentials}. */
export interface SessionCredentialsOptions {
  /** Undefined without identity. */
  client: IdentityClient | undefined;
  /** Throws for a service that does not check credentials. */
  requireCredentials: (id: ServiceId) => Promise<void>;
  sessions: Sessions;
  clock: Clock;
}

/** Finds and renews credentials. */
export class SessionCredentials {
  readonly #options: SessionCredentialsOptions;
  /** Renewals in flight: concurrent requests of a session share one. */
  readonly #renewals = new WeakMap<Session, Promise<IdentityTokens>>();

  constructor(options: SessionCredentialsOptions) {
    this.#options = options;
  }

  /** The headers that authenticate a session at a service; throws 401 if it has no credentials there. */
  async authorize(session: Session, { id, url }: Target): Promise<Record<string, string>> {
    await this.#options.requireCredentials(id);
    const own = session.credentials.get(id);
    if (own?.kind === "bearer") return { authorization: `Bearer ${own.token}` };
    // The service's console accepts its cookie from its own origin only.
    if (own?.kind === "cookie") {
      return { cookie: own.cookie, origin: url.origin, "sec-fetch-site": "same-origin" };
    }
    if (session.tokens === undefined) throw createConsoleError("not_signed_in_to_service");
    const { accessToken } = await this.#readTokens(session, session.tokens);
    return { authorization: `Bearer ${accessToken}` };
  }

  /** A service has refused the credentials of a session: they, or the session, end. */
  forget(session: Session, id: ServiceId): Error {
    if (session.credentials.has(id)) {
      session.credentials.delete(id);
      if (session.credentials.size > 0 || session.tokens !== undefined) {
        return createConsoleError("not_signed_in_to_service");
      }
    }
    this.#options.sessions.endWhere((one) => one === session);
    return createConsoleError("session_expired");
  }

  async #readTokens(session: Session, tokens: IdentityTokens): Promise<IdentityTokens> {
    const { client, clock } = this.#options;
    if (client === undefined || clock.now() < tokens.renewAtMs) return tokens;
    const known = this.#renewals.get(session);
    if (known !== undefined) return known;
    const renewal = this.#renew(client, session, tokens).finally(() =>
      this.#renewals.delete(session),
    );
    this.#renewals.set(session, renewal);
    return renewal;
  }

  async #renew(
    client: IdentityClient,
    session: Session,
    tokens: IdentityTokens,
  ): Promise<IdentityTokens> {
    try {
      session.tokens = await client.renew(tokens);
      return session.tokens;
    } catch (error) {
      if (toPlatformError(error).code !== "forbidden") throw error;
      this.#options.sessions.endWhere((one) => one === session);
      throw createConsoleError("session_expired", { cause: error });
    }
  }
}
