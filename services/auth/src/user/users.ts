// People: made, found, changed, disabled, removed.
import { isUniqueViolation } from "@platform/kernel/db";
import { PlatformError } from "@platform/kernel/errors";
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import { sql, type Kysely } from "kysely";
import { ADMIN_ROLE, requireGrantable, type Grantor } from "../rbac/grant.ts";
import type { PolicyStore } from "../rbac/policy-store.ts";
import type { AuthDatabase, AuthTables } from "../database/schema.ts";
import { toAccount, type Account } from "./account.ts";
import type { UserRow } from "../database/user.ts";
import { foldEmail, foldUsername } from "./username.ts";

/** What a user is made of; texts are normalised already. */
export interface NewUser {
  /** Of `createId`; a new one by default. */
  id?: string | undefined;
  username: string;
  email?: string | undefined;
  emailVerified?: boolean;
  name?: string | undefined;
  /** In PHC form. */
  passwordHash?: string | undefined;
}

/** What can be changed; undefined leaves as it is, null removes. */
export interface UserChange {
  email?: string | null | undefined;
  name?: string | null | undefined;
  picture?: string | null | undefined;
  phone?: string | null | undefined;
  tenant?: string | null | undefined;
  disabled?: boolean | undefined;
}

/** Users in the database. */
export class Users {
  readonly #database: AuthDatabase;
  readonly #clock: Clock;
  readonly #ids: IdSource;
  readonly #policy: PolicyStore;

  constructor(options: {
    database: AuthDatabase;
    clock: Clock;
    ids: IdSource;
    policy: PolicyStore;
  }) {
    this.#database = options.database;
    this.#clock = options.clock;
    this.#ids = options.ids;
    this.#policy = options.policy;
  }

  /** An id for a user who is about to be made. */
  createId(): string {
    return this.#ids.uuid();
  }

  /** Makes a user; 409 where the name is taken. */
  async create(user: NewUser, within: Kysely<AuthTables> = this.#database.db): Promise<Account> {
    const now = this.#clock.now();
    const row: UserRow = {
      id: user.id ?? this.createId(),
      username: user.username,
      username_key: foldUsername(user.username),
      email: user.email ?? null,
      email_key: user.email === undefined ? null : foldEmail(user.email),
      email_verified: user.emailVerified === true ? 1 : 0,
      name: user.name ?? null,
      picture: null,
      phone: null,
      tenant: null,
      password_hash: user.passwordHash ?? null,
      password_changed_at: user.passwordHash === undefined ? null : now,
      disabled: 0,
      epoch: 0,
      created_at: now,
      updated_at: now,
    };
    try {
      await within.insertInto("auth_users").values(row).execute();
    } catch (error) {
      throw explainDuplicate(error);
    }
    return toAccount(row);
  }

  /** Makes the first administrator; 409 where there is one, or the name belongs to somebody. */
  createFirstAdministrator(user: NewUser): Promise<Account> {
    return this.#policy.change(async (trx) => {
      const bound = await trx
        .selectFrom("auth_role_bindings")
        .select("subject_id")
        .where("role", "=", ADMIN_ROLE)
        .executeTakeFirst();
      if (bound !== undefined) throw new PlatformError("conflict", "There is an administrator.");
      const account = await this.create(user, trx);
      await trx
        .insertInto("auth_role_bindings")
        .values({ role: ADMIN_ROLE, subject_kind: "user", subject_id: account.id })
        .execute();
      return account;
    });
  }

  async find(id: string): Promise<Account | undefined> {
    const row = await this.findRow(id);
    return row === undefined ? undefined : toAccount(row);
  }

  /** With secrets. */
  findRow(id: string): Promise<UserRow | undefined> {
    return this.#database.db
      .selectFrom("auth_users")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirst();
  }

  /** With secrets; `username` in any form. */
  findRowByUsername(username: string): Promise<UserRow | undefined> {
    return this.#database.db
      .selectFrom("auth_users")
      .selectAll()
      .where("username_key", "=", foldUsername(username))
      .executeTakeFirst();
  }

  /** Whose verified address it is. */
  async findByVerifiedEmail(email: string): Promise<Account | undefined> {
    const row = await this.#database.db
      .selectFrom("auth_users")
      .selectAll()
      .where("email_key", "=", foldEmail(email))
      .where("email_verified", "=", 1)
      .executeTakeFirst();
    return row === undefined ? undefined : toAccount(row);
  }

  /** Users by name, from after `after`; `search` is a part of a user's name, address or display name. */
  async list(limit: number, after: string | undefined, search?: string): Promise<Account[]> {
    let query = this.#database.db.selectFrom("auth_users").selectAll();
    if (search !== undefined) {
      const contains = (text: string) => `%${text.replaceAll(/[\\%_]/g, "\\$&")}%`;
      query = query.where((row) =>
        row.or([
          sql<boolean>`username_key like ${contains(foldUsername(search))} escape '\\'`,
          sql<boolean>`email_key like ${contains(foldEmail(search))} escape '\\'`,
          sql<boolean>`lower(name) like ${contains(search.toLowerCase())} escape '\\'`,
        ]),
      );
    }
    if (after !== undefined) query = query.where("username_key", ">", after);
    return (await query.orderBy("username_key").limit(limit).execute()).map(toAccount);
  }

  /** Changes a user. Whoever is disabled loses sessions and tokens: the epoch goes up with it. */
  change(id: string, change: UserChange): Promise<Account> {
    return this.#policy.change(async (trx) => {
      const set: Partial<UserRow> = { updated_at: this.#clock.now() };
      if (change.name !== undefined) set.name = change.name;
      if (change.picture !== undefined) set.picture = change.picture;
      if (change.phone !== undefined) set.phone = change.phone;
      if (change.tenant !== undefined) set.tenant = change.tenant;
      if (change.disabled !== undefined) set.disabled = change.disabled ? 1 : 0;
      if (change.email !== undefined) {
        set.email = change.email;
        set.email_key = change.email === null ? null : foldEmail(change.email);
        set.email_verified = 0;
      }
      const row = await trx
        .updateTable("auth_users")
        .set((value) => ({
          ...set,
          ...(change.disabled === true ? { epoch: value("epoch", "+", 1) } : {}),
        }))
        .where("id", "=", id)
        .returningAll()
        .executeTakeFirst();
      if (row === undefined) throw noSuchUser();
      if (change.disabled === true) {
        await trx.deleteFrom("auth_sessions").where("user_id", "=", id).execute();
      }
      return toAccount(row);
    });
  }

  /** Removes a user with everything that is theirs. */
  delete(id: string): Promise<void> {
    return this.#policy.change(async (trx) => {
      await trx
        .deleteFrom("auth_role_bindings")
        .where("subject_kind", "=", "user")
        .where("subject_id", "=", id)
        .execute();
      const { numDeletedRows } = await trx
        .deleteFrom("auth_users")
        .where("id", "=", id)
        .executeTakeFirst();
      if (numDeletedRows === 0n) throw noSuchUser();
    });
  }

  /** Sets the password (in PHC form). */
  async setPassword(id: string, passwordHash: string): Promise<void> {
    const now = this.#clock.now();
    await this.#database.db
      .updateTable("auth_users")
      .set({ password_hash: passwordHash, password_changed_at: now, updated_at: now })
      .where("id", "=", id)
      .execute();
  }

  /** Marks the address as the user's own; 409 where somebody else has proved it before. */
  async verifyEmail(id: string, email: string): Promise<boolean> {
    try {
      const { numUpdatedRows } = await this.#database.db
        .updateTable("auth_users")
        .set({ email_verified: 1, updated_at: this.#clock.now() })
        .where("id", "=", id)
        .where("email_key", "=", foldEmail(email))
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw new PlatformError("conflict", "The address belongs to another account.");
    }
  }

  /** Makes everything void that was issued to the user before. */
  async raiseEpoch(id: string): Promise<void> {
    await this.#database.db
      .updateTable("auth_users")
      .set((value) => ({ epoch: value("epoch", "+", 1) }))
      .where("id", "=", id)
      .execute();
  }

  /** Throws 403 unless the grantor may all that the user may: the weaker do not manage the stronger. */
  async requireManageable(id: string, grantor: Grantor): Promise<void> {
    const { db } = this.#database;
    const bound = await db
      .selectFrom("auth_role_bindings")
      .select("role")
      .where((where) =>
        where.or([
          where.and([where("subject_kind", "=", "user"), where("subject_id", "=", id)]),
          where.and([
            where("subject_kind", "=", "group"),
            where("subject_id", "in", (groups) =>
              groups.selectFrom("auth_group_members").select("group_id").where("user_id", "=", id),
            ),
          ]),
        ]),
      )
      .execute();
    await requireGrantable(
      db,
      bound.map(({ role }) => role),
      grantor,
    );
  }
}

function explainDuplicate(error: unknown): unknown {
  if (isUniqueViolation(error, "username_key")) {
    return new PlatformError("conflict", "The name is taken.");
  }
  return isUniqueViolation(error)
    ? new PlatformError("conflict", "The address belongs to another account.")
    : error;
}

function noSuchUser(): PlatformError {
  return new PlatformError("not_found", "There is no such user.");
}
