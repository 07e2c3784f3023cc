// Sign-in through identity: the start and the callback of the browser; sign-out by identity.
import { toPlatformError } from "@platform/kernel/errors";
import { NO_BODY, defineRoute, type ApiRoute } from "@platform/kernel/http";
import type { SecretBox } from "@platform/kernel/secrets";
import type { Clock } from "@platform/kernel/time";
import { generateRandomCodeVerifier, generateRandomNonce, generateRandomState } from "oauth4webapi";
import { z } from "zod";
import { ConsoleCookie } from "../session/cookies.ts";
import { AGE_MS, nameSession, type SessionStore } from "../session/session-store.ts";
import { PENDING_MS, type IdentityClient, type PendingSignIn } from "./identity-client.ts";

const TARGET_CHARACTERS_MAX = 2_048;
const LOGOUT_BYTES_MAX = 16_384;
const SIGN_IN_PAGE = "/ui/sign-in";

/** Options of {@link createOidcRoutes}. */
export interface OidcRouteOptions {
  client: IdentityClient;
  cookie: ConsoleCookie;
  sessions: SessionStore;
  /** Encrypts the state of a sign-in in its cookie; all consoles of one name have the same keys. */
  box: SecretBox;
  isSecure: boolean;
  clock: Clock;
}

export function createOidcRoutes(options: OidcRouteOptions): ApiRoute[] {
  const { client, cookie, sessions, box, isSecure, clock } = options;
  // Lax: the way back from identity begins on another site.
  const state = new ConsoleCookie("platform_console_sign_in", { isSecure, sameSite: "Lax" });
  const own = { method: "GET", tag: "Console", access: "public", answer: NO_BODY } as const;
  return [
    defineRoute({
      ...own,
      path: "/console/oidc/start",
      summary: "Send the browser to identity, and back to a view of the console",
      query: z.object({
        to: z.string().max(TARGET_CHARACTERS_MAX).optional().describe("Path below /ui/"),
        prompt: z
          .enum(["none", "login"])
          .optional()
          .describe("none: without a page, if the user is signed in. login: sign in again."),
      }),
      status: 303,
      handle: async ({ query: { to, prompt } }) => {
        const pending: PendingSignIn = {
          state: generateRandomState(),
          nonce: generateRandomNonce(),
          verifier: generateRandomCodeVerifier(),
          to: checkTarget(to),
          isFresh: prompt === "login",
          expiresMs: clock.now() + PENDING_MS,
        };
        const url = await client.begin(pending, prompt);
        const sealed = box.seal(JSON.stringify(pending), state.name);
        return redirect(url, [state.format(sealed, PENDING_MS / 1_000)]);
      },
    }),
    defineRoute({
      ...own,
      path: "/console/oidc/callback",
      summary: "Finish a sign-in with the code of identity",
      status: 303,
      handle: async ({ headers, request }) => {
        const cookies = headers.get("cookie");
        const pending = readPending(state.read(cookies));
        if (pending === undefined) return showSignIn("/ui/", "expired", [state.clear()]);
        try {
          const grant = await client.finish(new URL(request.url).searchParams, pending);
          const before = cookie.read(cookies);
          if (before !== undefined) await sessions.end(nameSession(before));
          const { token } = await sessions.begin(grant);
          return redirect(pending.to, [state.clear(), cookie.format(token, AGE_MS / 1_000)]);
        } catch (error) {
          const { code, fields } = toPlatformError(error);
          // The user is not signed in at identity (`prompt=none`): the page offers to sign in.
          const reason = fields["oauth_error"];
          const isQuiet = typeof reason === "string" && reason.endsWith("_required");
          return showSignIn(pending.to, isQuiet ? "none" : code, [state.clear()]);
        }
      },
    }),
    defineRoute({
      method: "POST",
      path: "/console/oidc/backchannel",
      tag: "Console",
      access: "public",
      summary: "End the sessions that a logout token of identity names",
      bodyKind: "bytes",
      bodyBytesMax: LOGOUT_BYTES_MAX,
      status: 200,
      answer: NO_BODY,
      problems: {
        400: "The logout token is not valid",
        503: "Identity or the store of sessions does not answer",
      },
      handle: async ({ body }) => {
        const token = new URLSearchParams(Buffer.from(body).toString("latin1")).get("logout_token");
        const ended = await client.readLogout(token ?? "");
        await sessions.endSubject(ended);
        return new Response(null, { headers: { "Cache-Control": "no-store" } });
      },
    }),
  ];

  function readPending(sealed: string | undefined): PendingSignIn | undefined {
    if (sealed === undefined) return undefined;
    try {
      const pending = JSON.parse(box.open(sealed, state.name)) as PendingSignIn;
      return pending.expiresMs > clock.now() ? pending : undefined;
    } catch {
      // Of another process, or changed.
      return undefined;
    }
  }
}

/** A path of the page; another target would let a link lead through the sign-in to any site. */
function checkTarget(to = "/ui/"): string {
  return /^\/ui\/(?![/\\])[^\\\p{Cc}]*$/u.test(to) || to === "/ui/" ? to : "/ui/";
}

function showSignIn(to: string, problem: string, cookies: readonly string[]): Response {
  const search = new URLSearchParams({ to, ...(problem === "none" ? {} : { problem }) });
  return redirect(`${SIGN_IN_PAGE}?${search.toString()}`, cookies);
}

function redirect(url: string, cookies: readonly string[]): Response {
  const headers = new Headers({ Location: url, "Referrer-Policy": "no-referrer" });
  for (const cookie of cookies) headers.append("Set-Cookie", cookie);
  return new Response(null, { status: 303, headers });
}
