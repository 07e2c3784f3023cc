// `prompt=none` for users who have signed in on the service's own pages, which the core does not know.
import type { KoaContextWithOIDC } from "oidc-provider";
import type { Sessions } from "../../session/sessions.ts";
import { readHeaders } from "../../web/request.ts";
import type { SessionResolver } from "../../web/session-resolver.ts";

interface CoreSession {
  uid: string;
  accountId?: string;
  authorizations?: Record<string, unknown>;
  loginAccount(details: { accountId: string; loginTs: number; acr: string; amr: string[] }): void;
  resetIdentifier(): void;
}

/** Called by the core before it loads the account: adopts the session of the pages if the request forbids a prompt. */
export async function adoptOwnSession(
  ctx: KoaContextWithOIDC,
  sessions: Sessions,
  resolver: SessionResolver,
): Promise<void> {
  const { oidc } = ctx;
  const session = oidc.session as unknown as CoreSession | undefined;
  if (oidc.route !== "authorization" || session === undefined) return;
  if (oidc.params?.["prompt"] !== "none") return;
  const { accountId, uid } = session;
  if (accountId !== undefined && (await sessions.find(uid))?.userId === accountId) return;
  const own = await resolver.peek(readHeaders(ctx.req));
  if (own === undefined) return;
  // Authorizations of an ended session do not apply to the new one.
  session.authorizations = {};
  session.resetIdentifier();
  const loginTs = Math.floor(own.authTime / 1_000);
  session.loginAccount({ accountId: own.userId, loginTs, acr: own.acr, amr: [...own.amr] });
  session.uid = own.id;
}
