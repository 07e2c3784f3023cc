// Registered clients in the database: metadata in plain text, secrets sealed.
import { hash, timingSafeEqual } from "node:crypto";
import type { Clock } from "@platform/kernel/time";
import type { Transaction } from "kysely";
import { errors, type Adapter, type AdapterPayload } from "oidc-provider";
import type { ClientRow } from "../../database/oauth.ts";
import type { AuthDatabase, AuthTables } from "../../database/schema.ts";
import type { SecretBox } from "@platform/kernel/secrets";
import {
  DECISIVE_MEMBERS,
  findMetadataProblem,
  PLATFORM_AUDIENCE,
} from "../core/client-metadata.ts";
import { isPlatformClient } from "../core/lifetimes.ts";
import { addNamed, findExcess, limitScope, type ScopePermissions } from "./client-grant.ts";

const OPENED_MAX = 1_000;
const ID_PATTERN = /^[\x20-\x7e]{1,255}$/;

/** Options of the store. */
export interface ClientStoreOptions {
  database: AuthDatabase;
  box: SecretBox;
  clock: Clock;
  /** Existing scopes: a client that was allowed a scope stays valid after the scope is deleted. */
  getScopes: () => ScopePermissions;
  /** Permissions granted to the client that registers itself in the current request. */
  getGranted: () => readonly string[];
  /** Revokes everything that was issued to a deleted client. */
  revoke: (clientId: string) => Promise<void>;
  /** Called for each client that changed on this node. */
  onChange: (clientId: string) => void;
}

/** A client with its registration details. */
export interface ClientRecord {
  /** Includes the secret. */
  payload: AdapterPayload;
  /** Permissions that tokens of the client may convey. */
  granted: readonly string[];
  /** True if the client registered and manages itself. */
  isDynamic: boolean;
}

/** Registration details that an operator's change sets. */
export interface ClientGrantor {
  /** Permissions that tokens of the client may convey from now on. */
  granted: readonly string[];
  /** `undefined` keeps the current value. */
  keepsAudience?: boolean;
  /** The secret that was replaced, and the end of its use in ms; null ends it. `undefined` keeps the current value. */
  former?: { secret: string; endsAtMs: number } | null;
}

const KEPT_LISTED_MAX = 20;

export class ClientStore {
  readonly #options: ClientStoreOptions;
  /** Sealed secret → secret: every request of a client needs it. */
  readonly #opened = new Map<string, string>();

  constructor(options: ClientStoreOptions) {
    this.#options = options;
  }

  /** The core's adapter for clients. */
  createAdapter(): Adapter {
    const never = async (): Promise<undefined> => undefined;
    return {
      upsert: (id, payload) => this.#saveDynamic(id, payload),
      find: (id) => this.find(id),
      destroy: async (id) => {
        await this.delete(id);
      },
      findByUid: never,
      findByUserCode: never,
      consume: never,
      revokeByGrantId: never,
    };
  }

  /**
   * Metadata of a client with its secret, limited to the scopes that it may convey; `undefined` for an unknown
   * client.
   */
  async find(clientId: string): Promise<AdapterPayload | undefined> {
    const row = await this.#findRow(clientId);
    return row === undefined ? undefined : this.#read(row);
  }

  /** A client with its registration details; `undefined` for an unknown client. */
  async findRecord(clientId: string): Promise<ClientRecord | undefined> {
    const row = await this.#findRow(clientId);
    if (row === undefined) return undefined;
    return {
      payload: this.#read(row),
      granted: readGranted(row),
      isDynamic: row.is_dynamic === 1,
    };
  }

  /** At most `limit` clients without secrets by id, after `after`. */
  async list(after: string, limit: number): Promise<Record<string, unknown>[]> {
    const rows = await this.#options.database.db
      .selectFrom("auth_oauth_clients")
      .selectAll()
      .where("client_id", ">", after)
      .orderBy("client_id")
      .limit(limit)
      .execute();
    return rows.map((row) => this.#describe(row));
  }

  /** Number of clients that keep the platform's audience from before, with at most 20 ids. */
  async listKeepingAudience(): Promise<{ ids: string[]; count: number }> {
    const { db } = this.#options.database;
    const rows = await db
      .selectFrom("auth_oauth_clients")
      .select("client_id")
      .where("keeps_audience", "=", 1)
      .orderBy("client_id")
      .execute();
    return { ids: rows.slice(0, KEPT_LISTED_MAX).map((row) => row.client_id), count: rows.length };
  }

  /** Adds or replaces a client on behalf of an operator. */
  save(clientId: string, payload: AdapterPayload, by: ClientGrantor): Promise<void> {
    const { granted, keepsAudience, former } = by;
    return this.#save(clientId, payload, {
      granted: JSON.stringify(granted),
      ...(keepsAudience === undefined ? {} : { keeps_audience: keepsAudience ? 1 : 0 }),
      ...(former === undefined ? {} : this.#sealFormer(clientId, former)),
    });
  }

  /** True if a secret is the one that the client had before its last replacement, and is still accepted. */
  async acceptsFormer(clientId: string, given: string): Promise<boolean> {
    const row = await this.#findRow(clientId);
    const { former_secret: sealed, former_ends_at: endsAtMs } = row ?? {};
    if (typeof sealed !== "string" || (endsAtMs ?? 0) <= this.#options.clock.now()) return false;
    const secret = this.#options.box.open(sealed, placeOfFormer(clientId));
    return timingSafeEqual(digest(secret), digest(given));
  }

  #sealFormer(
    clientId: string,
    former: NonNullable<ClientGrantor["former"]> | null,
  ): Pick<ClientRow, "former_secret" | "former_ends_at"> {
    if (former === null) return { former_secret: null, former_ends_at: null };
    const sealed = this.#options.box.seal(former.secret, placeOfFormer(clientId));
    return { former_secret: sealed, former_ends_at: former.endsAtMs };
  }

  // A client that registers or changes itself is limited by the user who issued its initial access token.
  async #saveDynamic(clientId: string, payload: AdapterPayload): Promise<void> {
    const row = await this.#findRow(clientId);
    const granted = row === undefined ? this.#options.getGranted() : readGranted(row);
    const problem = findMetadataProblem(payload, this.#options.getScopes());
    if (problem !== undefined) throw new errors.InvalidClientMetadata(problem);
    const excess = findExcess(payload, this.#options.getScopes(), granted);
    if (excess !== undefined)
      throw new errors.InvalidClientMetadata(`${excess} exceeds what the client may be granted`);
    const metadata = { ...payload };
    for (const name of DECISIVE_MEMBERS) delete metadata[name];
    await this.#save(clientId, metadata, { granted: JSON.stringify(granted), is_dynamic: 1 });
  }

  async #save(
    clientId: string,
    payload: AdapterPayload,
    own: Partial<Omit<ClientRow, "client_id" | "metadata" | "secret">>,
  ): Promise<void> {
    const { database, box, clock } = this.#options;
    // Stored without the algorithm, which is the service's: a stored one would survive a change of the configuration.
    const { client_secret: secret, id_token_signed_response_alg: _, ...metadata } = payload;
    const now = clock.now();
    const changes = {
      ...own,
      metadata: JSON.stringify(metadata),
      secret: typeof secret === "string" ? box.seal(secret, placeOf(clientId)) : null,
      updated_at: now,
    };
    const added = { granted: "[]", is_dynamic: 0, keeps_audience: 0, created_at: now };
    await database.db
      .insertInto("auth_oauth_clients")
      .values({ ...added, ...changes, client_id: clientId })
      .onConflict((conflict) => conflict.column("client_id").doUpdateSet(changes))
      .execute();
    this.#options.onChange(clientId);
  }

  /**
   * Deletes a client with its roles, consents and policies and revokes what was issued to it; false if there is none.
   * Also used by clients that delete themselves (RFC 7592 section 2.3).
   */
  async delete(clientId: string): Promise<boolean> {
    const { database, onChange, revoke } = this.#options;
    const isGone = await database.transaction((trx) => deleteClient(trx, clientId));
    onChange(clientId);
    if (isGone) await revoke(clientId);
    return isGone;
  }

  async #findRow(clientId: string): Promise<ClientRow | undefined> {
    // Ids are generated here, so others are not looked up; PostgreSQL would reject U+0000.
    if (!ID_PATTERN.test(clientId)) return undefined;
    return this.#options.database.db
      .selectFrom("auth_oauth_clients")
      .selectAll()
      .where("client_id", "=", clientId)
      .executeTakeFirst();
  }

  #read(row: ClientRow): AdapterPayload {
    const metadata = this.#describe(row);
    if (row.secret !== null) metadata["client_secret"] = this.#open(row.client_id, row.secret);
    return metadata;
  }

  #describe(row: ClientRow): AdapterPayload {
    const metadata = JSON.parse(row.metadata) as AdapterPayload;
    if (row.is_dynamic === 1) {
      for (const name of DECISIVE_MEMBERS) delete metadata[name];
    }
    if (row.keeps_audience === 1) metadata[PLATFORM_AUDIENCE] = "always";
    const { scope } = metadata;
    if (scope !== undefined) metadata.scope = this.#limitScope(row, scope);
    return metadata;
  }

  #limitScope(row: ClientRow, scope: string): string {
    const scopes = this.#options.getScopes();
    const listed = isPlatformClient(row.client_id) ? addNamed(scope, scopes) : scope;
    return limitScope(listed, scopes, readGranted(row));
  }

  #open(clientId: string, sealed: string): string {
    const known = this.#opened.get(sealed);
    if (known !== undefined) return known;
    const secret = this.#options.box.open(sealed, placeOf(clientId));
    if (this.#opened.size >= OPENED_MAX) this.#opened.clear();
    this.#opened.set(sealed, secret);
    return secret;
  }
}

async function deleteClient(trx: Transaction<AuthTables>, clientId: string): Promise<boolean> {
  // The update locks the policy, so that concurrent bindings of roles to the client come before or fail.
  await trx
    .updateTable("auth_policy")
    .set((value) => ({ version: value("version", "+", 1) }))
    .execute();
  const gone = await trx
    .deleteFrom("auth_oauth_clients")
    .where("client_id", "=", clientId)
    .returning("client_id")
    .execute();
  await trx
    .deleteFrom("auth_role_bindings")
    .where("subject_kind", "=", "client")
    .where("subject_id", "=", clientId)
    .execute();
  await trx
    .deleteFrom("auth_mfa_policies")
    .where("scope", "=", "client")
    .where("subject", "=", clientId)
    .execute();
  await trx.deleteFrom("auth_oauth_consents").where("client_id", "=", clientId).execute();
  return gone.length === 1;
}

function placeOf(clientId: string): string {
  return `auth_oauth_clients.secret.${clientId}`;
}

function placeOfFormer(clientId: string): string {
  return `auth_oauth_clients.former_secret.${clientId}`;
}

function digest(secret: string): Buffer {
  return hash("sha256", secret, "buffer");
}

function readGranted(row: ClientRow): string[] {
  return JSON.parse(row.granted) as string[];
}
