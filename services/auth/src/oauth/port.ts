// What the rest of the service asks of the OAuth 2.0 and OpenID Connect core.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Claims } from "@platform/kernel/identity";
import type { SessionInfo } from "../session/session.ts";
import type { Account } from "../user/account.ts";

/** What a login answers beside its session. */
export interface LoginTokens {
  access_token: string;
  token_type: "Bearer";
  /** Seconds. */
  expires_in: number;
  refresh_token: string;
  scope: string;
}

/** The core. */
export interface OAuth {
  /** Takes the request over and answers it where its path is the core's; false leaves it to the API and the pages. */
  handle(request: IncomingMessage, response: ServerResponse): boolean;
  /** Tokens of the built-in client `platform`; `scope` asks for less than all that the roles permit. */
  mintForLogin(account: Account, session: SessionInfo, scope?: string): Promise<LoginTokens>;
  /** The claims of an access token of ours that is valid at this moment: signature, times, deny-list, session, epoch. */
  verifyAccessToken(token: string): Promise<Claims | undefined>;
  /** Ends grants and tokens of one session. */
  revokeSession(sid: string): Promise<void>;
  /** Ends grants and tokens of a user, whatever session they came from. */
  revokeUser(userId: string): Promise<void>;
  /** Stops what runs in the background. */
  close(): Promise<void>;
}
