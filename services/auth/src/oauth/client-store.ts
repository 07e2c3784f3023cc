// Registered clients: metadata in the clear, secrets sealed.
import type { Database } from "@platform/kernel/db";
import type { Clock } from "@platform/kernel/time";
import type { Adapter, AdapterPayload } from "oidc-provider";
import type { SecretBox } from "../key/secret-box.ts";
import type { ClientRow, OAuthTables } from "./schema.ts";

const openedMax = 1_000;
const idPattern = /^[\x20-\x7e]{1,255}$/;

/** What the store needs. */
export interface ClientStoreOptions {
  database: Database<OAuthTables>;
  box: SecretBox;
  clock: Clock;
  /** Scopes that exist now: those that a client was allowed before they were deleted must not spoil it. */
  getScopes: () => ReadonlySet<string>;
  /** Told of each client that has changed on this node. */
  onChange: (clientId: string) => void;
}

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
      upsert: (id, payload) => this.save(id, payload),
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

  /** A client's metadata with its secret; undefined for an unknown one. */
  async find(clientId: string): Promise<AdapterPayload | undefined> {
    // Ids are made here: what cannot be one is not looked for, and PostgreSQL would not even take U+0000.
    if (!idPattern.test(clientId)) return undefined;
    const row = await this.#options.database.db
      .selectFrom("auth_oauth_clients")
      .selectAll()
      .where("client_id", "=", clientId)
      .executeTakeFirst();
    return row === undefined ? undefined : this.#read(row);
  }

  /** Clients by id without their secrets, after `after`, at most `limit`. */
  async list(after: string, limit: number): Promise<Record<string, unknown>[]> {
    const rows = await this.#options.database.db
      .selectFrom("auth_oauth_clients")
      .select(["client_id", "metadata"])
      .where("client_id", ">", after)
      .orderBy("client_id")
      .limit(limit)
      .execute();
    return rows.map(({ metadata }) => JSON.parse(metadata) as Record<string, unknown>);
  }

  /** Adds or replaces. */
  async save(clientId: string, payload: AdapterPayload): Promise<void> {
    const { database, box, clock } = this.#options;
    // The algorithm is the service's; one that is written down here would outlive a change of it.
    const { client_secret: secret, id_token_signed_response_alg: _, ...metadata } = payload;
    const now = clock.now();
    const changes = {
      metadata: JSON.stringify(metadata),
      secret: typeof secret === "string" ? box.seal(secret, placeOf(clientId)) : null,
      updated_at: now,
    };
    await database.db
      .insertInto("auth_oauth_clients")
      .values({ client_id: clientId, ...changes, created_at: now })
      .onConflict((conflict) => conflict.column("client_id").doUpdateSet(changes))
      .execute();
    this.#options.onChange(clientId);
  }

  /** Deletes one; false where there is none. */
  async delete(clientId: string): Promise<boolean> {
    const gone = await this.#options.database.db
      .deleteFrom("auth_oauth_clients")
      .where("client_id", "=", clientId)
      .returning("client_id")
      .execute();
    this.#options.onChange(clientId);
    return gone.length === 1;
  }

  #read(row: ClientRow): AdapterPayload {
    const metadata = JSON.parse(row.metadata) as AdapterPayload;
    if (row.secret !== null) metadata["client_secret"] = this.#open(row.client_id, row.secret);
    const { scope } = metadata;
    if (scope !== undefined) {
      const known = this.#options.getScopes();
      metadata.scope = scope
        .split(" ")
        .filter((name) => known.has(name))
        .join(" ");
    }
    return metadata;
  }

  #open(clientId: string, sealed: string): string {
    const known = this.#opened.get(sealed);
    if (known !== undefined) return known;
    const secret = this.#options.box.open(sealed, placeOf(clientId));
    if (this.#opened.size >= openedMax) this.#opened.clear();
    this.#opened.set(sealed, secret);
    return secret;
  }
}

function placeOf(clientId: string): string {
  return `auth_oauth_clients.secret.${clientId}`;
}
