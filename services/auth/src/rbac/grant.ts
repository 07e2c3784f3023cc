// Who may hand out which rights, and that somebody is left who may hand out all.
import { PlatformError } from "@platform/kernel/errors";
import type { Kysely } from "kysely";
import type { AuthTables } from "../database/schema.ts";
import { hasPermission } from "./permission.ts";
import { inheritRoles } from "./rights.ts";

/** The role that may everything and cannot be changed. */
export const ADMIN_ROLE = "admin";

/** The permission that includes all others. */
export const EVERY_PERMISSION = "*:*";

/** A transaction in which the policy cannot change under one's feet. */
export type PolicyTransaction = Kysely<AuthTables>;

/** Who changes the policy, with what they may do themselves; undefined for the machine's own operator. */
export type Grantor = { permissions: readonly string[] } | undefined;

/** Users who are not disabled and have the administrators' role, themselves or through a group. */
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

/** Throws 404 where there is no role of one of the names. */
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

/** Throws 403 where somebody would hand out what they do not have. */
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

/** Throws 403 where one of the permissions is not the grantor's. */
export function requireHeld(permissions: readonly string[], grantor: Grantor): void {
  if (grantor === undefined) return;
  const lacking = permissions.find((item) => !hasPermission(grantor.permissions, item));
  if (lacking !== undefined) {
    throw new PlatformError("forbidden", `You cannot give or take ${lacking}, which you lack.`);
  }
}
