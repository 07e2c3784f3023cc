// `prompt=none` for people who have signed in on the service's own pages, which the core has not seen.
import type { IncomingMessage } from "node:http";
import type { KoaContextWithOIDC } from "oidc-provider";
import type { SessionInfo } from "../../session/session.ts";
import type { Sessions } from "../../session/sessions.ts";

/** The session that a browser has on the service's own pages; undefined if it is not signed in. */
export type FindOwnSession = (request: IncomingMessage) => Promise<SessionInfo | undefined>;

interface CoreSession {
  uid: string;
  accountId?: string;
  authorizations?: Record<string, unknown>;
  loginAccount(details: { accountId: string; loginTs: number; acr: string; amr: string[] }): void;
  resetIdentifier(): void;
}

/** For the core, before it loads the account: signs its session in where it may not ask the user to. */
export async function adoptOwnSession(
  ctx: KoaContextWithOIDC,
  sessions: Sessions,
  findOwnSession: FindOwnSession,
): Promise<void> {
  const { oidc } = ctx;
  const session = oidc.session as unknown as CoreSession | undefined;
  if (oidc.route !== "authorization" || session === undefined) return;
  if (oidc.params?.["prompt"] !== "none") return;
  const { accountId, uid } = session;
  if (accountId !== undefined && (await sessions.find(uid))?.userId === accountId) return;
  const own = await findOwnSession(ctx.req);
  if (own === undefined) return;
  // What was granted in a session that has ended belongs to that one.
  session.authorizations = {};
  session.resetIdentifier();
  const loginTs = Math.floor(own.authTime / 1_000);
  session.loginAccount({ accountId: own.userId, loginTs, acr: own.acr, amr: [...own.amr] });
  session.uid = own.id;
}
