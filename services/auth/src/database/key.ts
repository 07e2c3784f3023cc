// The table of signing keys.
import type { Migration } from "@platform/kernel/db";

/** Signature algorithms of tokens. */
export type SigningAlgorithm = "RS256" | "ES256";

/** One signing key. Times are in ms. */
export interface SigningKeyRow {
  kid: string;
  /** Counts up by one; unique, so that of two nodes that rotate at once one wins. */
  generation: number;
  algorithm: SigningAlgorithm;
  /** PKCS #8 PEM, sealed. */
  private_key: string;
  created_at: number;
  /** It signs from here on, until a later one does. */
  activates_at: number;
  /** It is no longer published from here on; null while no successor is known. */
  expires_at: number | null;
  /** Dropped at once, with all that it signed. */
  revoked_at: number | null;
}

/** The tables of this room. */
export interface KeyTables {
  auth_signing_keys: SigningKeyRow;
}

/** The history of these tables. */
export const KEY_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-signing-keys",
    statements: (t) => [
      `create table auth_signing_keys (
        kid ${t.text} primary key, generation ${t.integer} not null unique, algorithm ${t.text} not null,
        private_key ${t.text} not null, created_at ${t.integer} not null,
        activates_at ${t.integer} not null, expires_at ${t.integer}, revoked_at ${t.integer})`,
    ],
  },
];
