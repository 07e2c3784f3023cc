// The table of signing keys.
import type { Migration } from "@platform/kernel/db";

/** Signature algorithms of tokens. */
export type SigningAlgorithm = "RS256" | "ES256";

/** One signing key. Times are in ms. */
export interface SigningKeyRow {
  kid: string;
  /** Increases by one; unique, so that only one of two nodes that rotate concurrently succeeds. */
  generation: number;
  algorithm: SigningAlgorithm;
  /** PKCS #8 PEM, sealed. */
  private_key: string;
  created_at: number;
  /** The key signs from this time until a later key does. */
  activates_at: number;
  /** The key is published until this time; null until a successor is known. */
  expires_at: number | null;
  /** Set when the key was revoked together with everything it signed. */
  revoked_at: number | null;
}

/** Tables of signing keys. */
export interface KeyTables {
  auth_signing_keys: SigningKeyRow;
}

/** Migrations of these tables. */
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
