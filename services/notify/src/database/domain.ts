// Tables of sending domains and their DKIM keys.
import type { Migration } from "@platform/kernel/db";

/** A sending domain that was added over the API; those of the configuration have no row. */
interface DomainRow {
  domain: string;
  created_at: number;
}

/** State of a key: published in DNS or not yet, signing, or replaced and kept for mail in transit. */
type DkimKeyState = "pending" | "active" | "retired";

export interface DkimKeyRow {
  domain: string;
  selector: string;
  /** PKCS #8, PEM, sealed. */
  private_key: string;
  /** SubjectPublicKeyInfo, base64. */
  public_key: string;
  state: DkimKeyState;
  created_at: number;
  /** Time of the last change of state. */
  changed_at: number;
}

/** Tables of domains. */
export interface DomainTables {
  notify_domains: DomainRow;
  notify_dkim_keys: DkimKeyRow;
}

/** Migrations of these tables. */
export const DOMAIN_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-domains",
    statements: (t) => [
      `create table notify_domains (domain ${t.text} primary key, created_at ${t.integer} not null)`,
      `create table notify_dkim_keys (
        domain ${t.text} not null, selector ${t.text} not null, private_key ${t.text} not null,
        public_key ${t.text} not null, state ${t.text} not null, created_at ${t.integer} not null,
        changed_at ${t.integer} not null, primary key (domain, selector))`,
    ],
  },
];
