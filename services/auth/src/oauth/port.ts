// What the rest of the service asks of the OAuth 2.0 and OpenID Connect core.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Claims } from "@platform/kernel/identity";
import type { KeyReport, Rotation } from "../key/key-ring.ts";
import type { Grantor } from "../rbac/grant.ts";
import type { Rights } from "../rbac/rights.ts";
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

/** A client as consent pages show it. */
export interface ClientCard {
  id: string;
  name: string;
  uri: string | undefined;
  logoUri: string | undefined;
  policyUri: string | undefined;
  tosUri: string | undefined;
}

/** What a user has granted to a client. */
export interface ClientGrant {
  client: ClientCard;
  scopes: readonly string[];
  /** The first consent that still holds, in ms. */
  grantedAt: number;
  /** In ms; a later sign-in of the client does not extend it. */
  expiresAt: number;
}

/** An authorization request that waits for the user. */
export interface Interaction {
  uid: string;
  /** What is needed: to say with which account, a sign-in, or consent by the user who is signed in. */
  prompt: "select_account" | "login" | "consent";
  /** Why, in the core's words: `no_session`, `max_age`, `acr_values`, `login_prompt`, `op_scopes_missing`, … */
  reasons: readonly string[];
  client: ClientCard;
  /** Scopes that are asked for; on a consent page those that the user has not granted before. */
  scopes: readonly string[];
  loginHint: string | undefined;
  /** Space-separated `acr_values` that the client asks for (RFC 9470). */
  acrValues: string | undefined;
  /** Space-separated languages that the client knows the user to prefer. */
  uiLocales: string | undefined;
  /** Of the user who is signed in already. */
  accountId: string | undefined;
  /** When the request came, in ms: a sign-in from here on is one for it. */
  startedAt: number;
  /** Where the browser goes afterwards. */
  redirectUri: string | undefined;
  /** On a consent page: nobody has to be asked, because the client is the operator's own or was allowed as much before. */
  isAgreed: boolean;
}

/** How an interaction ends. */
export type InteractionOutcome =
  /** The user signed in with this session, or has been for long enough. */
  | { kind: "login"; session: SessionInfo }
  /** The user goes on with the account of this session. */
  | { kind: "selected"; session: SessionInfo }
  /** The user grants what was asked for; `isAsked` unless that was agreed before: only what people said is remembered. */
  | { kind: "consent"; isAsked: boolean }
  /** The user does not want to: the client is told `access_denied`. */
  | { kind: "denied" };

/** The core. */
export interface OAuth {
  /** Takes the request over and answers it where its path is the core's; false leaves it to the API and the pages. */
  handle(request: IncomingMessage, response: ServerResponse): boolean;
  /** The route of a path that `handle` takes over, for metrics and logs: a pattern, never what somebody sent. */
  findRoute(path: string): string | undefined;
  /** Tokens of the built-in client `platform`; `scope` asks for less than all that the roles permit. */
  mintForLogin(account: Account, session: SessionInfo, scope?: string): Promise<LoginTokens>;
  /**
   * The claims of an access token of ours for the platform that is valid at this moment: signature, audience, times,
   * deny-list, session, epoch.
   */
  verifyAccessToken(token: string): Promise<Claims | undefined>;
  /** The authorization request that the browser's cookie names; undefined where it has none or took too long. */
  findInteraction(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<Interaction | undefined>;
  /** Ends it and returns the URL to send the browser to (303). Throws `not_found` where there is none. */
  finishInteraction(
    request: IncomingMessage,
    response: ServerResponse,
    outcome: InteractionOutcome,
  ): Promise<string>;
  /** Ends grants and tokens of one session, and tells clients that have a back-channel logout address. */
  revokeSession(sid: string): Promise<void>;
  /** Ends grants and tokens of a user, whatever session they came from; the user's epoch has gone up before. */
  revokeUser(userId: string): Promise<void>;
  /** What a user has granted to clients other than the built-in one, by client. */
  listGrants(userId: string): Promise<ClientGrant[]>;
  /** Ends what a user has granted to a client, with all tokens; false where there is nothing. */
  revokeGrants(userId: string, clientId: string): Promise<boolean>;
  /** A caller's rights as far as the token that names them conveys them. */
  limitRights(claims: Claims, rights: Rights): Rights;
  /**
   * Registers a client; the answer holds its secret. Throws `validation_failed` for metadata that is not allowed, and
   * `forbidden` for a client that could do more than the grantor, as all changes do.
   */
  addClient(metadata: Record<string, unknown>, grantor: Grantor): Promise<Record<string, unknown>>;
  /** A client without its secret; undefined if there is none. */
  findClient(clientId: string): Promise<Record<string, unknown> | undefined>;
  /** Throws `forbidden` unless the grantor has all that the client can have. */
  requireClientManageable(clientId: string, grantor: Grantor): Promise<void>;
  /** Changes metadata of a client; null removes a member. The answer holds the secret if it is a new one. */
  changeClient(
    clientId: string,
    changes: Record<string, unknown>,
    grantor: Grantor,
  ): Promise<Record<string, unknown>>;
  /** Replaces a client's secret at once; the answer holds the new one. */
  rotateClientSecret(clientId: string, grantor: Grantor): Promise<Record<string, unknown>>;
  /** Clients without their secrets, by id, after `after`. */
  listClients(after: string, limit: number): Promise<Record<string, unknown>[]>;
  /** Deletes a client with all of its tokens; false where there is none. */
  deleteClient(clientId: string, grantor: Grantor): Promise<boolean>;
  /** A token that lets its holder register clients for `expiresInSeconds`; they convey no more than the grantor has. */
  createInitialAccessToken(expiresInSeconds: number, grantor: Grantor): Promise<string>;
  /** Signing keys, the newest first. */
  listKeys(): Promise<KeyReport[]>;
  /** Rotates the signing keys. */
  rotateKeys(rotation: Rotation): Promise<{ kid: string }>;
  /** Reads keys and scopes again, now rather than within a second. */
  refresh(): Promise<void>;
  /** Stops what runs in the background. */
  close(): Promise<void>;
}
