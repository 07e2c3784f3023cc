// Registered clients: metadata in the clear, secrets sealed.
import type { Clock } from "@platform/kernel/time";
import { errors, type Adapter, type AdapterPayload } from "oidc-provider";
import type { Transaction } from "kysely";
import type { SecretBox } from "../../key/secret-box.ts";
import type { AuthDatabase, AuthTables } from "../../database/schema.ts";
import { findExcess, limitScope, type ScopePermissions } from "./client-grant.ts";
import { findMetadataProblem, FIRST_PARTY, PLATFORM_AUDIENCE } from "../core/client-metadata.ts";
import type { ClientRow } from "../../database/oauth.ts";

const OPENED_MAX = 1_000;
const ID_PATTERN = /^[\x20-\x7e]{1,255}$/;

/** What the store needs. */
export interface ClientStoreOptions {
  database: AuthDatabase;
  box: SecretBox;
  clock: Clock;
  /** Scopes that exist now: those that a client was allowed before they were deleted must not spoil it. */
  getScopes: () => ScopePermissions;
  /** Permissions granted to the client that registers itself in the request being served. */
  getGranted: () => readonly string[];
  /** Ends what was issued to a client that has been deleted. */
  revoke: (clientId: string) => Promise<void>;
  /** Told of each client that has changed on this node. */
  onChange: (clientId: string) => void;
}

/** A client with how it came to be. */
export interface ClientRecord {
  /** With the secret. */
  payload: AdapterPayload;
  /** Permissions that its tokens may convey. */
  granted: readonly string[];
  /** True if it registered itself and manages itself. */
  isDynamic: boolean;
}

/** What an operator's registration or change writes beside the metadata. */
export interface ClientGrantor {
  /** Permissions that tokens of the client may convey from now on. */
  granted: readonly string[];
  /** Undefined leaves as it is. */
  keepsAudience?: boolean;
}

const KEPT_LISTED_MAX = 20;

/** The clients. */
export class ClientStore {
  readonly #options: ClientStoreOptions;
  /** Sealed secret → secret, for every request of a client opens it. */
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

  /** A client's metadata with its secret, and with the scopes that it may convey; undefined for an unknown one. */
  async find(clientId: string): Promise<AdapterPayload | undefined> {
    const row = await this.#findRow(clientId);
    return row === undefined ? undefined : this.#read(row);
  }

  /** A client with how it came to be; undefined for an unknown one. */
  async findRecord(clientId: string): Promise<ClientRecord | undefined> {
    const row = await this.#findRow(clientId);
    if (row === undefined) return undefined;
    return {
      payload: this.#read(row),
      granted: readGranted(row),
      isDynamic: row.is_dynamic === 1,
    };
  }

  /** Clients by id without their secrets, after `after`, at most `limit`. */
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

  /** Ids of clients that keep the platform's audience from before, at most 20, and how many there are. */
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
    const { granted, keepsAudience } = by;
    return this.#save(clientId, payload, {
      granted: JSON.stringify(granted),
      ...(keepsAudience === undefined ? {} : { keeps_audience: keepsAudience ? 1 : 0 }),
    });
  }

  // A client that registers or changes itself is bounded by whoever let it register.
  async #saveDynamic(clientId: string, payload: AdapterPayload): Promise<void> {
    const row = await this.#findRow(clientId);
    const granted = row === undefined ? this.#options.getGranted() : readGranted(row);
    const problem = findMetadataProblem(payload, this.#options.getScopes());
    if (problem !== undefined) throw new errors.InvalidClientMetadata(problem);
    const excess = findExcess(payload, this.#options.getScopes(), granted);
    if (excess !== undefined)
      throw new errors.InvalidClientMetadata(`${excess} is more than the client may be granted`);
    const { [FIRST_PARTY]: _, [PLATFORM_AUDIENCE]: __, ...metadata } = payload;
    await this.#save(clientId, metadata, { granted: JSON.stringify(granted), is_dynamic: 1 });
  }

  async #save(
    clientId: string,
    payload: AdapterPayload,
    own: Partial<Pick<ClientRow, "granted" | "is_dynamic" | "keeps_audience">>,
  ): Promise<void> {
    const { database, box, clock } = this.#options;
    // The algorithm is the service's; one that is written down here would outlive a change of it.
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
   * Deletes one with its roles, consents and policies, and ends what was issued to it; false where there is none. The same
   * for one that deletes itself (RFC 7592 section 2.3).
   */
  async delete(clientId: string): Promise<boolean> {
    const { database, onChange, revoke } = this.#options;
    const isGone = await database.transaction((trx) => deleteClient(trx, clientId));
    onChange(clientId);
    if (isGone) await revoke(clientId);
    return isGone;
  }

  async #findRow(clientId: string): Promise<ClientRow | undefined> {
    // Ids are made here: what cannot be one is not looked for, and PostgreSQL would not even take U+0000.
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
      delete metadata[FIRST_PARTY];
      delete metadata[PLATFORM_AUDIENCE];
    }
    if (row.keeps_audience === 1) metadata[PLATFORM_AUDIENCE] = "always";
    const { scope } = metadata;
    if (scope !== undefined)
      metadata.scope = limitScope(scope, this.#options.getScopes(), readGranted(row));
    return metadata;
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
  // The update locks the policy: roles that are being bound to the client come before or not at all.
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

function readGranted(row: ClientRow): string[] {
  return JSON.parse(row.granted) as string[];
}
