// Tables of the OAuth core: short-lived items, clients, issued tokens, revocations.
import type { Migration } from "@platform/kernel/db";

/** One item of the core, such as a code, refresh token, grant, session or interaction. Times are in ms. */
export interface ItemRow {
  /** SHA-256 of model and id. The id itself is a credential and is not stored. */
  id_hash: string;
  model: string;
  /** JSON; sealed for models that contain other credentials. */
  payload: string;
  grant_id: string | null;
  /** The session of the item: the `sid` of tokens. */
  sid: string | null;
  account_id: string | null;
  client_id: string | null;
  /** SHA-256 of a device flow's user code. */
  user_code_hash: string | null;
  consumed_at: number | null;
  /** Thumbprint of the DPoP key that consumed it. */
  consumed_jkt: string | null;
  /** The item may be deleted from this time on; null if it does not expire. */
  expires_at: number | null;
}

/** A registered client (RFC 7591). */
export interface ClientRow {
  client_id: string;
  /** JSON of the client metadata without the secret. */
  metadata: string;
  /** The sealed secret; null for clients without one. */
  secret: string | null;
  /** The sealed secret before the last replacement; null without one. */
  former_secret: string | null;
  /** The former secret is accepted until then, in ms. */
  former_ends_at: number | null;
  /**
   * JSON list of the permissions of the user who registered or last changed the client. Tokens of the client convey
   * no others.
   */
  granted: string;
  /** 1 if the client registered itself with an initial access token and manages itself. */
  is_dynamic: number;
  /**
   * 1 if the client was registered when all tokens had the platform's audience and no administrator has decided
   * since.
   */
  keeps_audience: number;
  created_at: number;
  updated_at: number;
}

/** An access token of a grant, kept until it expires: revoking a grant has to revoke its tokens by id. */
interface IssuedRow {
  jti: string;
  grant_id: string;
  /** Space-separated claims that were requested for userinfo in addition to those of the scope; null without any. */
  claims: string | null;
  expires_at: number;
}

/** The scopes that a user has granted to a client, independent of a session. */
export interface ConsentRow {
  account_id: string;
  client_id: string;
  /** Space-separated, sorted. */
  scopes: string;
  agreed_at: number;
  expires_at: number;
}

/** The logo of a client. */
export interface ClientLogoRow {
  client_id: string;
  /** SHA-256 of the content, hexadecimal: its address. */
  hash: string;
  type: string;
  content: Uint8Array;
  updated_at: number;
}

/** The subject of a revocation. */
export type RevocationKind = "jti" | "sid" | "sub" | "kid" | "client";

/** A revocation, kept until the last token it affects has expired. */
interface RevocationRow {
  kind: RevocationKind;
  value: string;
  /** Position in the feed; increases across all nodes. */
  seq: number;
  /** For `sub`: tokens with a lower epoch are void. */
  epoch: number;
  expires_at: number;
}

/** Tables of the OAuth core. */
export interface OAuthTables {
  auth_oauth_items: ItemRow;
  auth_oauth_clients: ClientRow;
  auth_oauth_issued: IssuedRow;
  auth_oauth_consents: ConsentRow;
  auth_oauth_client_logos: ClientLogoRow;
  auth_revocations: RevocationRow;
  /** One row: the last position in the feed. Updating it makes revocations commit in the order of their positions. */
  auth_revocation_clock: { id: number; seq: number };
}

/** Migrations of these tables. */
export const OAUTH_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-oauth",
    statements: (t) => [
      `create table auth_oauth_items (
        id_hash ${t.text} primary key, model ${t.text} not null, payload ${t.text} not null,
        grant_id ${t.text}, sid ${t.text}, account_id ${t.text}, client_id ${t.text}, user_code_hash ${t.text},
        consumed_at ${t.integer}, consumed_jkt ${t.text}, expires_at ${t.integer})`,
      "create index auth_oauth_items_by_grant on auth_oauth_items (grant_id)",
      "create index auth_oauth_items_by_sid on auth_oauth_items (sid)",
      "create index auth_oauth_items_by_account on auth_oauth_items (account_id)",
      "create index auth_oauth_items_by_client on auth_oauth_items (client_id)",
      "create index auth_oauth_items_by_expiry on auth_oauth_items (expires_at)",
      "create unique index auth_oauth_items_by_user_code on auth_oauth_items (user_code_hash)",
      `create table auth_oauth_clients (
        client_id ${t.text} primary key, metadata ${t.text} not null, secret ${t.text},
        created_at ${t.integer} not null, updated_at ${t.integer} not null)`,
      `create table auth_oauth_issued (
        jti ${t.text} primary key, grant_id ${t.text} not null, expires_at ${t.integer} not null)`,
      "create index auth_oauth_issued_by_grant on auth_oauth_issued (grant_id)",
      "create index auth_oauth_issued_by_expiry on auth_oauth_issued (expires_at)",
      `create table auth_revocations (
        kind ${t.text} not null, value ${t.text} not null, seq ${t.integer} not null unique,
        epoch ${t.integer} not null, expires_at ${t.integer} not null, primary key (value, kind))`,
      "create index auth_revocations_by_expiry on auth_revocations (expires_at)",
      `create table auth_revocation_clock (id ${t.integer} primary key check (id = 1), seq ${t.integer} not null)`,
      "insert into auth_revocation_clock (id, seq) values (1, 0)",
    ],
  },
  {
    id: "0002-consents",
    statements: (t) => [
      `create table auth_oauth_consents (
        account_id ${t.text} not null references auth_users (id) on delete cascade,
        client_id ${t.text} not null, scopes ${t.text} not null, agreed_at ${t.integer} not null,
        expires_at ${t.integer} not null, primary key (account_id, client_id))`,
      "create index auth_oauth_consents_by_client on auth_oauth_consents (client_id)",
      "create index auth_oauth_consents_by_expiry on auth_oauth_consents (expires_at)",
    ],
  },
  {
    id: "0003-issued-claims",
    statements: (t) => [`alter table auth_oauth_issued add column claims ${t.text}`],
  },
  {
    id: "0004-client-grants",
    statements: (t) => [
      `alter table auth_oauth_clients add column granted ${t.text} not null default '["*:*"]'`,
      `alter table auth_oauth_clients add column is_dynamic ${t.integer} not null default 0`,
      `alter table auth_oauth_clients add column keeps_audience ${t.integer} not null default 0`,
      "update auth_oauth_clients set keeps_audience = 1",
      `update auth_oauth_clients set is_dynamic = 1 where client_id in
        (select client_id from auth_oauth_items where model = 'RegistrationAccessToken' and client_id is not null)`,
    ],
  },
  {
    id: "0005-client-logos",
    statements: (t) => [
      `create table auth_oauth_client_logos (
        client_id ${t.text} primary key references auth_oauth_clients (client_id) on delete cascade,
        hash ${t.text} not null, type ${t.text} not null, content ${t.bytes} not null,
        updated_at ${t.integer} not null)`,
      "create index auth_oauth_client_logos_by_hash on auth_oauth_client_logos (hash)",
    ],
  },
  {
    id: "0006-former-secrets",
    statements: (t) => [
      `alter table auth_oauth_clients add column former_secret ${t.text}`,
      `alter table auth_oauth_clients add column former_ends_at ${t.integer}`,
    ],
  },
];
