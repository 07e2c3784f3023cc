// Consents of users, remembered across sessions so that users are not asked again.
import type { Database } from "@platform/kernel/db";
import type { Clock } from "@platform/kernel/time";
import type { ConsentRow, OAuthTables } from "../../database/oauth.ts";

const KEPT_MS = 105 * 24 * 3_600_000;

/** Consents, each valid for 105 days, as long as a grant. */
export class Consents {
  readonly #database: Database<OAuthTables>;
  readonly #clock: Clock;

  constructor(database: Database<OAuthTables>, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** The scopes that the user has granted to the client. */
  async find(userId: string, clientId: string): Promise<ReadonlySet<string>> {
    const row = await this.#database.db
      .selectFrom("auth_oauth_consents")
      .select("scopes")
      .where("account_id", "=", userId)
      .where("client_id", "=", clientId)
      .where("expires_at", ">", this.#clock.now())
      .executeTakeFirst();
    return new Set(row?.scopes.split(" "));
  }

  /** Adds scopes to the existing consent. */
  async remember(userId: string, clientId: string, scopes: Iterable<string>): Promise<void> {
    const known = await this.find(userId, clientId);
    const now = this.#clock.now();
    const row: ConsentRow = {
      account_id: userId,
      client_id: clientId,
      scopes: [...new Set([...known, ...scopes])]
        .filter((name) => name !== "")
        .sort()
        .join(" "),
      agreed_at: now,
      expires_at: now + KEPT_MS,
    };
    await this.#database.db
      .insertInto("auth_oauth_consents")
      .values(row)
      .onConflict((conflict) =>
        conflict.columns(["account_id", "client_id"]).doUpdateSet({
          scopes: row.scopes,
          agreed_at: row.agreed_at,
          expires_at: row.expires_at,
        }),
      )
      .execute();
  }

  /** All consents of a user. */
  list(userId: string): Promise<ConsentRow[]> {
    return this.#database.db
      .selectFrom("auth_oauth_consents")
      .selectAll()
      .where("account_id", "=", userId)
      .where("expires_at", ">", this.#clock.now())
      .orderBy("client_id")
      .execute();
  }

  /** Deletes the user's consent to the client; false if there was none. */
  async forget(userId: string, clientId: string): Promise<boolean> {
    const { numDeletedRows } = await this.#database.db
      .deleteFrom("auth_oauth_consents")
      .where("account_id", "=", userId)
      .where("client_id", "=", clientId)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }

  /** Deletes expired consents. */
  async sweep(): Promise<void> {
    await this.#database.db
      .deleteFrom("auth_oauth_consents")
      .where("expires_at", "<=", this.#clock.now())
      .execute();
  }
}
