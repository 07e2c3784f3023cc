// The session of a request and its user, for the API, the pages and OAuth.
import type { HeaderReader } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import type { SessionInfo } from "../session/session.ts";
import type { Sessions } from "../session/sessions.ts";
import type { Account } from "../user/account.ts";
import type { Users } from "../user/users.ts";
import type { Cookies } from "./cookies.ts";

/** Maximum age of a sign-in that counts as fresh, in ms. */
export const FRESH_MS = 600_000;

/** A live session of an enabled user. */
export interface ResolvedSession {
  readonly account: Account;
  readonly session: SessionInfo;
  /** The new token if this request renewed the session's token; the client must receive it. */
  readonly renewedToken: string | undefined;
}

export interface SessionResolverOptions {
  sessions: Sessions;
  users: Users;
  cookies: Cookies;
  clock: Clock;
  /** Maximum lifetime of a session, in ms: that of the cookie as well. */
  sessionAbsoluteMs: number;
}

export class SessionResolver {
  readonly #options: SessionResolverOptions;

  constructor(options: SessionResolverOptions) {
    this.#options = options;
  }

  /** The token of the session cookie; `undefined` without one. */
  readCookie(headers: HeaderReader): string | undefined {
    return this.#options.cookies.read(headers, "platform_session");
  }

  /** The session of a token, which counts as used; `undefined` for invalid tokens and disabled users. */
  async use(token: string): Promise<ResolvedSession | undefined> {
    const found = await this.#options.sessions.use(token);
    if (found === undefined) return undefined;
    const account = await this.#options.users.find(found.session.userId);
    if (account === undefined || account.disabled) return undefined;
    return { account, session: found.session, renewedToken: found.token };
  }

  /** The session of the cookie, which does not count as used. */
  async peek(headers: HeaderReader): Promise<SessionInfo | undefined> {
    const token = this.readCookie(headers);
    return token === undefined ? undefined : this.#options.sessions.peek(token);
  }

  /** `Set-Cookie` for a session's token. */
  formatCookie(token: string): string {
    const { cookies, sessionAbsoluteMs } = this.#options;
    return cookies.format("platform_session", token, sessionAbsoluteMs);
  }

  /** True if the user signed in within the last ten minutes; `authTime` in ms. */
  isFresh({ authTime }: { readonly authTime: number }): boolean {
    return this.#options.clock.now() - authTime <= FRESH_MS;
  }
}
