// Policies that require a second factor: lifting one from users requires all roles of these users.
import { requireGrantable, type Grantor, type PolicyTransaction } from "./grant.ts";
import { inheritRoles } from "./rights.ts";

/** Users affected by a change: one user, the members of a group, or the holders of a role. */
export interface Concerned {
  kind: "user" | "group" | "role";
  id: string;
}

/** Throws 403 unless the grantor holds every role of the affected users. */
export async function requireConcernedGrantable(
  trx: PolicyTransaction,
  concerned: Concerned,
  grantor: Grantor,
): Promise<void> {
  if (grantor === undefined) return;
  const own = concerned.kind === "role" ? [concerned.id] : [];
  const holders = concerned.kind === "role" ? await findDescendants(trx, concerned.id) : [];
  const users = selectUsers(trx, concerned, holders);
  const rows = await trx
    .selectFrom("auth_role_bindings")
    .select("role")
    .distinct()
    .where((where) =>
      where.or([
        where.and([where("subject_kind", "=", "user"), where("subject_id", "in", users)]),
        where.and([
          where("subject_kind", "=", "group"),
          where("subject_id", "in", (groups) =>
            groups
              .selectFrom("auth_group_members")
              .select("group_id")
              .where("user_id", "in", users),
          ),
        ]),
      ]),
    )
    .execute();
  await requireGrantable(trx, [...own, ...rows.map(({ role }) => role)], grantor);
}

/** As `requireConcernedGrantable`, if a policy requires a second factor of the group's members. */
export async function requireGroupDutyLiftable(
  trx: PolicyTransaction,
  groupId: string,
  concerned: Concerned,
  grantor: Grantor,
): Promise<void> {
  const policy = await trx
    .selectFrom("auth_mfa_policies")
    .select("subject")
    .where("scope", "=", "group")
    .where("required", "=", 1)
    .where("subject", "=", groupId)
    .executeTakeFirst();
  if (policy !== undefined) await requireConcernedGrantable(trx, concerned, grantor);
}

/**
 * As `requireConcernedGrantable`, if a policy requires a second factor of holders of one of the roles or its
 * ancestors.
 */
export async function requireRoleDutyLiftable(
  trx: PolicyTransaction,
  lostRoles: readonly string[],
  concerned: Concerned,
  grantor: Grantor,
): Promise<void> {
  if (grantor === undefined || lostRoles.length === 0) return;
  const parents = await trx.selectFrom("auth_role_parents").selectAll().execute();
  const policy = await trx
    .selectFrom("auth_mfa_policies")
    .select("subject")
    .where("scope", "=", "role")
    .where("required", "=", 1)
    .where("subject", "in", inheritRoles(lostRoles, parents))
    .executeTakeFirst();
  if (policy !== undefined) await requireConcernedGrantable(trx, concerned, grantor);
}

function selectUsers(trx: PolicyTransaction, { kind, id }: Concerned, holders: readonly string[]) {
  const users = trx.selectFrom("auth_users").select("id");
  switch (kind) {
    case "user":
      return users.where("id", "=", id);
    case "group":
      return users.where("id", "in", (members) =>
        members.selectFrom("auth_group_members").select("user_id").where("group_id", "=", id),
      );
    case "role":
      return users.where((where) =>
        where.or([
          where("id", "in", (bindings) =>
            bindings
              .selectFrom("auth_role_bindings")
              .select("subject_id")
              .where("subject_kind", "=", "user")
              .where("role", "in", holders),
          ),
          where("id", "in", (members) =>
            members
              .selectFrom("auth_group_members")
              .innerJoin("auth_role_bindings", "subject_id", "group_id")
              .select("user_id")
              .where("subject_kind", "=", "group")
              .where("role", "in", holders),
          ),
        ]),
      );
    default:
      return kind satisfies never;
  }
}

// The role and all roles that inherit from it.
async function findDescendants(trx: PolicyTransaction, role: string): Promise<string[]> {
  const parents = await trx.selectFrom("auth_role_parents").selectAll().execute();
  return inheritRoles(
    [role],
    parents.map((row) => ({ role: row.parent, parent: row.role })),
  );
}
