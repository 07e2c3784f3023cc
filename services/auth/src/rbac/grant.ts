// Checks that grantors hold what they grant, and that an administrator is left.
import { PlatformError } from "@platform/kernel/errors";
import type { Kysely } from "kysely";
import type { AuthTables } from "../database/schema.ts";
import { hasPermission } from "./permission.ts";
import { inheritRoles } from "./rights.ts";

/** The built-in role with all permissions. */
export const ADMIN_ROLE = "admin";

/** The permission that includes all others. */
export const EVERY_PERMISSION = "*:*";

/** A transaction that holds the lock of the policy. */
export type PolicyTransaction = Kysely<AuthTables>;

/** The caller who changes the policy, with their permissions; `undefined` for the operator of the machine. */
export type Grantor = { permissions: readonly string[] } | undefined;

/** Number of enabled users with the administrator role, bound directly or through a group. */
export async function countAdministrators(trx: PolicyTransaction): Promise<number> {
  const { administrators } = await trx
    .selectFrom("auth_users")
    .select((select) => select.fn.countAll<number>().as("administrators"))
    .where("disabled", "=", 0)
    .where("id", "in", (ids) =>
      ids
        .selectFrom("auth_role_bindings")
        .select("subject_id as id")
        .where("role", "=", ADMIN_ROLE)
        .where("subject_kind", "=", "user")
        .union((members) =>
          members
            .selectFrom("auth_group_members")
            .innerJoin("auth_role_bindings", "subject_id", "group_id")
            .select("user_id as id")
            .where("role", "=", ADMIN_ROLE)
            .where("subject_kind", "=", "group"),
        ),
    )
    .executeTakeFirstOrThrow();
  return administrators;
}

/** Throws 404 if one of the roles does not exist. */
export async function requireRoles(
  trx: PolicyTransaction,
  names: readonly string[],
): Promise<void> {
  if (names.length === 0) return;
  const rows = await trx
    .selectFrom("auth_roles")
    .select("name")
    .where("name", "in", names)
    .execute();
  const missing = names.find((name) => !rows.some((row) => row.name === name));
  if (missing !== undefined) {
    throw new PlatformError("not_found", `There is no role ${missing}.`);
  }
}

/** Throws 403 if the grantor lacks a permission of the roles. */
export async function requireGrantable(
  trx: PolicyTransaction,
  roles: readonly string[],
  grantor: Grantor,
): Promise<void> {
  if (grantor === undefined || roles.length === 0) return;
  const parents = await trx.selectFrom("auth_role_parents").selectAll().execute();
  const rows = await trx
    .selectFrom("auth_role_permissions")
    .select("permission")
    .where("role", "in", inheritRoles(roles, parents))
    .execute();
  requireHeld(
    rows.map(({ permission }) => permission),
    grantor,
  );
}

/** Throws 403 unless the grantor has all permissions. */
export function requireAdministrator(grantor: Grantor, what: string): void {
  if (grantor === undefined || hasPermission(grantor.permissions, EVERY_PERMISSION)) return;
  throw new PlatformError("forbidden", `Only administrators can ${what}.`);
}

/** Throws 403 if the grantor lacks one of the permissions. */
export function requireHeld(permissions: readonly string[], grantor: Grantor): void {
  if (grantor === undefined) return;
  const lacking = permissions.find((item) => !hasPermission(grantor.permissions, item));
  if (lacking !== undefined) {
    throw new PlatformError("forbidden", `You cannot grant or revoke ${lacking}, which you lack.`);
  }
}
