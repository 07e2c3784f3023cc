// Groups of users, to which roles and policies can be bound.
import { isUniqueViolation } from "@platform/kernel/db";
import { PlatformError } from "@platform/kernel/errors";
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import type { AuthDatabase } from "../database/schema.ts";
import type { GroupRow } from "../database/user.ts";
import { requireGrantable, type Grantor, type PolicyTransaction } from "../rbac/grant.ts";
import type { PolicyStore } from "../rbac/policy-store.ts";
import { requireGroupDutyLiftable } from "../rbac/second-factor-duty.ts";

/** A user of a group. */
export interface GroupMember {
  id: string;
  username: string;
}

/** Groups in the database. */
export class Groups {
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

  /** Groups by name, after `after`. */
  list(limit: number, after: string | undefined): Promise<GroupRow[]> {
    let query = this.#database.db.selectFrom("auth_groups").selectAll();
    if (after !== undefined) query = query.where("name", ">", after);
    return query.orderBy("name").limit(limit).execute();
  }

  async create(name: string): Promise<GroupRow> {
    const row: GroupRow = { id: this.#ids.uuid(), name, created_at: this.#clock.now() };
    try {
      await this.#database.db.insertInto("auth_groups").values(row).execute();
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw new PlatformError("conflict", `The group ${name} already exists.`);
    }
    return row;
  }

  /** A group. Throws 404 if it does not exist. */
  find(id: string): Promise<GroupRow> {
    return requireGroup(this.#database.db, id);
  }

  /** Ids of the members, sorted, after `after`. */
  async listMembers(id: string, limit: number, after: string | undefined): Promise<GroupMember[]> {
    await requireGroup(this.#database.db, id);
    let query = this.#database.db
      .selectFrom("auth_group_members")
      .innerJoin("auth_users", "auth_users.id", "auth_group_members.user_id")
      .select(["auth_users.id", "auth_users.username"])
      .where("group_id", "=", id);
    if (after !== undefined) query = query.where("user_id", ">", after);
    return query.orderBy("user_id").limit(limit).execute();
  }

  /** Adds a user. The grantor must hold the group's roles. */
  addMember(id: string, userId: string, grantor: Grantor): Promise<void> {
    return this.#policy.change(async (trx) => {
      await requireGroup(trx, id);
      await requireGroupGrantable(trx, id, grantor);
      const user = await trx
        .selectFrom("auth_users")
        .select("id")
        .where("id", "=", userId)
        .executeTakeFirst();
      if (user === undefined) throw new PlatformError("not_found", "There is no such user.");
      await trx
        .insertInto("auth_group_members")
        .values({ group_id: id, user_id: userId })
        .onConflict((conflict) => conflict.doNothing())
        .execute();
    });
  }

  removeMember(id: string, userId: string, grantor: Grantor): Promise<void> {
    return this.#policy.change(async (trx) => {
      await requireGroup(trx, id);
      await requireGroupGrantable(trx, id, grantor);
      await requireGroupDutyLiftable(trx, id, { kind: "user", id: userId }, grantor);
      await trx
        .deleteFrom("auth_group_members")
        .where("group_id", "=", id)
        .where("user_id", "=", userId)
        .execute();
    });
  }

  delete(id: string, grantor: Grantor): Promise<void> {
    return this.#policy.change(async (trx) => {
      await requireGroup(trx, id);
      await requireGroupGrantable(trx, id, grantor);
      await requireGroupDutyLiftable(trx, id, { kind: "group", id }, grantor);
      await trx
        .deleteFrom("auth_role_bindings")
        .where("subject_kind", "=", "group")
        .where("subject_id", "=", id)
        .execute();
      await trx.deleteFrom("auth_groups").where("id", "=", id).execute();
    });
  }
}

async function requireGroup(trx: PolicyTransaction, id: string): Promise<GroupRow> {
  const row = await trx
    .selectFrom("auth_groups")
    .selectAll()
    .where("id", "=", id)
    .executeTakeFirst();
  if (row === undefined) throw new PlatformError("not_found", "There is no such group.");
  return row;
}

async function requireGroupGrantable(
  trx: PolicyTransaction,
  id: string,
  grantor: Grantor,
): Promise<void> {
  const rows = await trx
    .selectFrom("auth_role_bindings")
    .select("role")
    .where("subject_kind", "=", "group")
    .where("subject_id", "=", id)
    .execute();
  await requireGrantable(
    trx,
    rows.map(({ role }) => role),
    grantor,
  );
}
