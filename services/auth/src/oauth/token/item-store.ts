// The core's items in the database: its adapter, with single use that is safe under concurrency.
import { hash } from "node:crypto";
import type { Database } from "@platform/kernel/db";
import type { Clock } from "@platform/kernel/time";
import type { Kysely } from "kysely";
import type { Adapter, AdapterPayload } from "oidc-provider";
import type { ItemRow, OAuthTables } from "../../database/oauth.ts";
import type { SecretBox } from "@platform/kernel/secrets";
import { createLostRaceError, createReplayError, isReplayError } from "../core/core-errors.ts";
import type { RefreshRotation } from "./refresh-rotation.ts";
import type { RevocationList } from "./revocation-list.ts";

/** A stored item. */
export interface Item {
  readonly payload: AdapterPayload;
  readonly consumedAt: number | undefined;
  readonly consumedJkt: string | undefined;
}

/** Options of the store. */
export interface ItemStoreOptions {
  database: Database<OAuthTables>;
  box: SecretBox;
  clock: Clock;
  revocations: RevocationList;
  rotation: RefreshRotation;
  /** Client and DPoP key of the current request. */
  getRequest: () => { clientId: string | undefined; jkt: string | undefined };
}

// Their payloads contain other credentials: the device code, the browser's session, a pushed request.
const SEALED_MODELS = new Set(["Interaction", "DeviceCode", "PushedAuthorizationRequest"]);
// Redeemed codes are kept: a replay hours later still reveals that they have leaked.
const KEPT_AFTER_EXPIRY_MS: Readonly<Record<string, number>> = {
  AuthorizationCode: 24 * 3_600_000,
};
const GRACE_AFTER_EXPIRY_MS = 60_000;
const GRANTS_MAX = 1_000;
// Two requests with one code within this time are a race of one client; later the code has been stolen.
const CODE_RACE_MS = 10_000;

export class ItemStore {
  readonly #options: ItemStoreOptions;

  constructor(options: ItemStoreOptions) {
    this.#options = options;
  }

  /** The adapter of one of the core's models. */
  createAdapter(model: string): Adapter {
    return {
      upsert: (id, payload, expiresIn) => this.#upsert(model, id, payload, expiresIn),
      find: (id) => this.#find(model, id),
      findByUid: async (uid) => {
        const row = await this.#readBy(model, "sid", uid);
        return row === undefined ? undefined : this.#open(row).payload;
      },
      findByUserCode: async (userCode) => {
        const row = await this.#readBy(model, "user_code_hash", hashId(model, userCode));
        return row === undefined ? undefined : this.#open(row).payload;
      },
      consume: (id) => this.#consume(model, id),
      destroy: async (id) => {
        await this.#options.database.db
          .deleteFrom("auth_oauth_items")
          .where("id_hash", "=", hashId(model, id))
          .execute();
      },
      revokeByGrantId: (grantId) => this.#revokeByGrantId(model, grantId),
    };
  }

  /** The item in any state. */
  async read(model: string, id: string): Promise<Item | undefined> {
    const row = await this.#readRow(model, id);
    return row === undefined ? undefined : this.#open(row);
  }

  /** The core's session that shares this `sid`. */
  async readSession(sid: string): Promise<AdapterPayload | undefined> {
    const row = await this.#readBy("Session", "sid", sid);
    return row === undefined ? undefined : this.#open(row).payload;
  }

  /** The core's sessions of a user. */
  async readSessionsOf(
    accountId: string,
    within: Kysely<OAuthTables> = this.#options.database.db,
  ): Promise<AdapterPayload[]> {
    const rows = await within
      .selectFrom("auth_oauth_items")
      .selectAll()
      .where("account_id", "=", accountId)
      .where("model", "=", "Session")
      .execute();
    return rows.map((row) => this.#open(row).payload);
  }

  /** Grants of a user, at most 1 000, newest first. */
  async readGrantsOf(accountId: string): Promise<AdapterPayload[]> {
    const rows = await this.#options.database.db
      .selectFrom("auth_oauth_items")
      .selectAll()
      .where("account_id", "=", accountId)
      .where("model", "=", "Grant")
      .where("expires_at", ">", this.#options.clock.now())
      .orderBy("expires_at", "desc")
      .limit(GRANTS_MAX)
      .execute();
    return rows.map((row) => this.#open(row).payload);
  }

  /**
   * Revokes the grants of a user to a client: the given ones and those that stored items belong to. False if there
   * were none.
   */
  async revokeGrantsTo(
    clientId: string,
    accountId: string,
    named: readonly string[],
  ): Promise<boolean> {
    const { db } = this.#options.database;
    // All grants first, as in `revokeGrant`; then everything issued under them is known.
    const gone = await db
      .deleteFrom("auth_oauth_items")
      .where("account_id", "=", accountId)
      .where("client_id", "=", clientId)
      .where("model", "=", "Grant")
      .returning("id_hash")
      .execute();
    const rows = await db
      .selectFrom("auth_oauth_items")
      .select("grant_id")
      .distinct()
      .where("account_id", "=", accountId)
      .where("client_id", "=", clientId)
      .where("grant_id", "is not", null)
      .execute();
    const grants = new Set([...named, ...rows.map(({ grant_id }) => grant_id!)]);
    for (const grantId of grants) await this.revokeGrant(grantId);
    return gone.length > 0;
  }

  /** Revokes a grant with everything issued under it. */
  async revokeGrant(grantId: string): Promise<void> {
    const { database, revocations } = this.#options;
    // The grant is deleted and committed first: tokens issued later do not find it, and those issued before are found
    // below.
    await database.db
      .deleteFrom("auth_oauth_items")
      .where("id_hash", "=", hashId("Grant", grantId))
      .execute();
    await database.db
      .deleteFrom("auth_oauth_items")
      .where("grant_id", "=", grantId)
      // A request that waits for the user, who may continue with another account.
      .where("model", "!=", "Interaction")
      .execute();
    await revocations.revokeIssued(grantId);
  }

  /** Deletes all items of a session, a user or a client, and their grants. */
  async deleteAll(
    column: "sid" | "account_id" | "client_id",
    value: string,
    within: Kysely<OAuthTables> = this.#options.database.db,
  ): Promise<void> {
    const rows = await within
      .selectFrom("auth_oauth_items")
      .select(["grant_id"])
      .where(column, "=", value)
      .where("grant_id", "is not", null)
      .distinct()
      .execute();
    const grants = rows.map(({ grant_id }) => hashId("Grant", grant_id!));
    await within
      .deleteFrom("auth_oauth_items")
      .where((where) =>
        where.or([
          where(column, "=", value),
          ...(grants.length > 0 ? [where("id_hash", "in", grants)] : []),
        ]),
      )
      .execute();
  }

  /** Accepts an id once until `expiresAt` (seconds); false if it was accepted before. */
  async acceptOnce(id: string, expiresAt: number): Promise<boolean> {
    const expiresIn = expiresAt - Math.floor(this.#options.clock.now() / 1_000);
    try {
      await this.#upsert("ReplayDetection", id, { exp: expiresAt }, expiresIn);
      return true;
    } catch (error) {
      if (isReplayError(error)) return false;
      throw error;
    }
  }

  /** Deletes expired items. */
  async sweep(): Promise<void> {
    await this.#options.database.db
      .deleteFrom("auth_oauth_items")
      .where("expires_at", "<=", this.#options.clock.now())
      .execute();
  }

  async #upsert(
    model: string,
    id: string,
    payload: AdapterPayload,
    expiresIn: number | undefined,
  ): Promise<void> {
    const { database, clock } = this.#options;
    const row = this.#buildRow(model, id, payload, expiresIn);
    const { id_hash: _, consumed_at: __, consumed_jkt: ___, ...changes } = row;
    const insert = database.db.insertInto("auth_oauth_items").values(row);
    switch (model) {
      case "RefreshToken":
        // A second derivation of the same successor must not change it, used or not.
        await insert.onConflict((conflict) => conflict.column("id_hash").doNothing()).execute();
        return;
      case "ReplayDetection": {
        const stored = await insert
          .onConflict((conflict) =>
            conflict
              .column("id_hash")
              .doUpdateSet(changes)
              .where("auth_oauth_items.expires_at", "<=", clock.now()),
          )
          .returning("id_hash")
          .execute();
        if (stored.length === 0) throw createReplayError();
        return;
      }
      default:
        await insert
          .onConflict((conflict) => conflict.column("id_hash").doUpdateSet(changes))
          .execute();
    }
  }

  #buildRow(
    model: string,
    id: string,
    payload: AdapterPayload,
    expiresIn: number | undefined,
  ): ItemRow {
    const { clock, box } = this.#options;
    const isSealed = SEALED_MODELS.has(model);
    const id_hash = hashId(model, id);
    const { jti: _, ...rest } = payload;
    const text = JSON.stringify(isSealed ? payload : rest);
    const keptMs = KEPT_AFTER_EXPIRY_MS[model] ?? GRACE_AFTER_EXPIRY_MS;
    return {
      id_hash,
      model,
      payload: isSealed ? box.seal(text, placeOf(id_hash)) : text,
      grant_id: payload.grantId ?? null,
      sid: (model === "Session" ? payload.uid : payload.sessionUid) ?? null,
      account_id: payload.accountId ?? null,
      client_id: payload.clientId ?? null,
      user_code_hash: payload.userCode === undefined ? null : hashId(model, payload.userCode),
      consumed_at: null,
      consumed_jkt: null,
      expires_at: expiresIn === undefined ? null : clock.now() + expiresIn * 1_000 + keptMs,
    };
  }

  async #find(model: string, id: string): Promise<AdapterPayload | undefined> {
    const row = await this.#readRow(model, id);
    if (row === undefined) return undefined;
    const item = this.#open(row);
    const payload = { ...item.payload, jti: id };
    if (item.consumedAt === undefined) return payload;
    if (model === "AuthorizationCode") await this.#refuseUsedCode(item);
    if (model === "RefreshToken" && (await this.#isRepeat(id, item))) return payload;
    return { ...payload, consumed: Math.floor(item.consumedAt / 1_000) };
  }

  // The core would revoke immediately, which punishes a client for its own race, and never after the code has
  // expired.
  async #refuseUsedCode(item: Item): Promise<never> {
    const { clock, getRequest } = this.#options;
    const { grantId, clientId } = item.payload;
    const isRace = clock.now() - item.consumedAt! <= CODE_RACE_MS;
    if (!isRace && grantId !== undefined && getRequest().clientId === clientId) {
      await this.revokeGrant(grantId);
    }
    throw createLostRaceError("AuthorizationCode");
  }

  async #isRepeat(id: string, item: Item): Promise<boolean> {
    const { rotation, getRequest } = this.#options;
    const { jkt } = getRequest();
    if (!rotation.isWithinGrace(item, jkt)) return false;
    const successor = await this.#readRow("RefreshToken", rotation.deriveSuccessor(id));
    return successor === undefined || successor.consumed_at === null;
  }

  async #consume(model: string, id: string): Promise<void> {
    const { database, clock, getRequest } = this.#options;
    const { jkt } = model === "RefreshToken" ? getRequest() : { jkt: undefined };
    const won = await database.db
      .updateTable("auth_oauth_items")
      .set({ consumed_at: clock.now(), consumed_jkt: jkt ?? null })
      .where("id_hash", "=", hashId(model, id))
      .where("consumed_at", "is", null)
      .returning("id_hash")
      .execute();
    if (won.length === 1) return;
    const item = await this.read(model, id);
    const isRepeat =
      model === "RefreshToken" && item !== undefined && (await this.#isRepeat(id, item));
    if (!isRepeat) throw createLostRaceError(model);
  }

  async #revokeByGrantId(model: string, grantId: string): Promise<void> {
    if (model === "AccessToken") {
      await this.revokeGrant(grantId);
      return;
    }
    await this.#options.database.db
      .deleteFrom("auth_oauth_items")
      .where("grant_id", "=", grantId)
      .where("model", "=", model)
      .execute();
  }

  async #readRow(model: string, id: string): Promise<ItemRow | undefined> {
    return this.#options.database.db
      .selectFrom("auth_oauth_items")
      .selectAll()
      .where("id_hash", "=", hashId(model, id))
      .executeTakeFirst();
  }

  async #readBy(
    model: string,
    column: "sid" | "user_code_hash",
    value: string,
  ): Promise<ItemRow | undefined> {
    return this.#options.database.db
      .selectFrom("auth_oauth_items")
      .selectAll()
      .where(column, "=", value)
      .where("model", "=", model)
      .executeTakeFirst();
  }

  #open(row: ItemRow): Item {
    const { box } = this.#options;
    const isSealed = SEALED_MODELS.has(row.model);
    const text = isSealed ? box.open(row.payload, placeOf(row.id_hash)) : row.payload;
    return {
      payload: JSON.parse(text) as AdapterPayload,
      consumedAt: row.consumed_at ?? undefined,
      consumedJkt: row.consumed_jkt ?? undefined,
    };
  }
}

function hashId(model: string, id: string): string {
  return hash("sha256", `${model}\0${id}`, "base64url");
}

function placeOf(idHash: string): string {
  return `auth_oauth_items.payload.${idHash}`;
}
