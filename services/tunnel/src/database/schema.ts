// Tables of the relay and their migrations.
import type { Database, Migration } from "@platform/kernel/db";

/** A tunnel: a name or port that belongs to a subject. Times are in ms since 1970. */
export interface TunnelRow {
  id: string;
  subject: string;
  kind: "http" | "tcp";
  /** HTTP: label below the relay's domain. */
  subdomain: string | null;
  /** TCP: port of the relay. */
  port: number | null;
  /** Target as its owner wrote it; "" if a reservation leaves it open. */
  target: string;
  auth_required: 0 | 1;
  /** Created by the API: clients serve it only with the same target. */
  reserved: 0 | 1;
  /** The name was generated: it belongs to the client with this key. */
  generated: 0 | 1;
  /** SHA-256 of the key of the client that used the tunnel last; "" before. */
  client_hash: string;
  created_at: number;
  last_seen_at: number;
}

/** A custom domain, proven by TXT. */
interface DomainRow {
  domain: string;
  tunnel_id: string;
  verified_at: number;
}

/** A share link. Its token is signed and not stored. */
export interface ShareRow {
  id: string;
  tunnel_id: string;
  one_time: 0 | 1;
  created_at: number;
  expires_at: number;
  used_at: number | null;
  revoked_at: number | null;
}

/** A subject that the operator has cut off. */
export interface CutSubjectRow {
  subject: string;
  reason: string;
  cut_at: number;
}

/** Keys of the relay, generated once. */
interface SecretRow {
  name: string;
  value: string;
}

export interface TunnelTables {
  tunnel_tunnels: TunnelRow;
  tunnel_domains: DomainRow;
  tunnel_shares: ShareRow;
  tunnel_cut_subjects: CutSubjectRow;
  tunnel_secrets: SecretRow;
}

/** The relay's database. */
export type TunnelDatabase = Database<TunnelTables>;

const MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-tunnels",
    statements: (t) => [
      `create table tunnel_tunnels (
        id ${t.text} primary key, subject ${t.text} not null, kind ${t.text} not null,
        subdomain ${t.text} unique, port ${t.integer} unique, target ${t.text} not null,
        auth_required ${t.integer} not null, reserved ${t.integer} not null,
        generated ${t.integer} not null, client_hash ${t.text} not null,
        created_at ${t.integer} not null, last_seen_at ${t.integer} not null)`,
      "create index tunnel_tunnels_by_subject on tunnel_tunnels (subject)",
      "create index tunnel_tunnels_by_use on tunnel_tunnels (last_seen_at)",
      `create table tunnel_domains (
        domain ${t.text} primary key,
        tunnel_id ${t.text} not null references tunnel_tunnels (id) on delete cascade,
        verified_at ${t.integer} not null)`,
      "create index tunnel_domains_by_tunnel on tunnel_domains (tunnel_id)",
      `create table tunnel_shares (
        id ${t.text} primary key,
        tunnel_id ${t.text} not null references tunnel_tunnels (id) on delete cascade,
        one_time ${t.integer} not null, created_at ${t.integer} not null,
        expires_at ${t.integer} not null, used_at ${t.integer}, revoked_at ${t.integer})`,
      "create index tunnel_shares_by_tunnel on tunnel_shares (tunnel_id)",
      "create index tunnel_shares_by_expiry on tunnel_shares (expires_at)",
      `create table tunnel_cut_subjects (
        subject ${t.text} primary key, reason ${t.text} not null, cut_at ${t.integer} not null)`,
      `create table tunnel_secrets (name ${t.text} primary key, value ${t.text} not null)`,
    ],
  },
];

/** Version of the tables, recorded in backups: the number of migrations. */
export const DATA_FORMAT = MIGRATIONS.length;

/** Migrates all tables; several processes may do so at the same time. */
export async function migrateAll(database: TunnelDatabase, nowMs: number): Promise<void> {
  await database.migrate(MIGRATIONS, nowMs, "tunnel");
}
