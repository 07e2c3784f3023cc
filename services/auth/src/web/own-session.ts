// The session that a browser has on the service's own pages, for the OAuth core.
import type { FindOwnSession } from "../oauth/provider/silent-sign-in.ts";
import type { Sessions } from "../session/sessions.ts";
import type { Cookies } from "./cookies.ts";

/** Finds the session by the cookie of the pages and leaves its token as it is. */
export function createOwnSessionFinder(cookies: Cookies, sessions: Sessions): FindOwnSession {
  return async ({ headers: { cookie } }) => {
    const headers = new Headers(cookie === undefined ? {} : { cookie });
    const token = cookies.read(headers, "platform_session");
    return token === undefined ? undefined : sessions.peek(token);
  };
}
