// Sign-out without a question: for clients that name the session by its ID token, and for browsers without a session.
import type { KoaContextWithOIDC } from "oidc-provider";

interface NamedSession {
  uid: string;
  accountId?: string;
  authorizations?: Record<string, { sid?: string }>;
  destroy(): Promise<void>;
}

export interface NamedSignOutOptions {
  /** Ends a session with its tokens, and notifies its clients. */
  endSession: (sid: string) => Promise<void>;
  /** The cookie of the core's session. */
  cookie: { name: string; attributes: Parameters<KoaContextWithOIDC["cookies"]["set"]>[2] };
}

/**
 * Ends the session of the browser and redirects, if the client's `id_token_hint` names this session or its user; the core
 * has verified its signature. Otherwise returns false: the user must be asked (OpenID Connect RP-Initiated Logout 1.0 section 2).
 */
export async function endNamedSession(
  ctx: KoaContextWithOIDC,
  { endSession, cookie }: NamedSignOutOptions,
): Promise<boolean> {
  const { client, params, entities } = ctx.oidc;
  const session = ctx.oidc.session as unknown as NamedSession;
  const hint = (entities as { IdTokenHint?: { payload: Record<string, unknown> } }).IdTokenHint;
  if (client === undefined || hint === undefined) return false;
  const { sub, sid } = hint.payload;
  const known = session.authorizations?.[client.clientId]?.sid;
  // ID tokens contain `sid` only for clients that require it at back-channel logout.
  if (sub !== session.accountId || known === undefined) return false;
  if (sid !== undefined && sid !== known) return false;
  await endSession(session.uid);
  await session.destroy();
  ctx.cookies.set(cookie.name, null, cookie.attributes);
  ctx.status = 303;
  ctx.redirect(nameLanding(ctx, params?.["post_logout_redirect_uri"], params?.["state"]));
  return true;
}

/** Redirects a browser that is not signed in: the core would submit a form of its own by script. The core has verified the target. */
export function skipSignOut(ctx: KoaContextWithOIDC): void {
  const { params } = ctx.oidc;
  ctx.body = null;
  ctx.status = 303;
  ctx.redirect(nameLanding(ctx, params?.["post_logout_redirect_uri"], params?.["state"]));
}

function nameLanding(ctx: KoaContextWithOIDC, target: unknown, state: unknown): string {
  if (typeof target !== "string") return ctx.oidc.urlFor("end_session_success");
  const url = new URL(target);
  if (typeof state === "string") url.searchParams.set("state", state);
  return url.href;
}
