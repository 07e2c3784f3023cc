// Changes of scopes. A scope grants permissions through tokens, so the grantor must hold all that it conveys.
import { PlatformError } from "@platform/kernel/errors";
import {
  requireAdministrator,
  requireGrantable,
  requireHeld,
  requireRoles,
  type Grantor,
  type PolicyTransaction,
} from "./grant.ts";
import { PERMISSION } from "./permission.ts";
import { inheritRoles, OPENID_SCOPES, USE_SCOPE, type Scope } from "./rights.ts";

const SCOPES_MAX = 1000;

/** Creates or replaces a scope. The grantor must hold what it conveyed before and what it conveys now. */
export async function putScope(
  trx: PolicyTransaction,
  scope: Scope,
  grantor: Grantor,
  nowMs: number,
): Promise<void> {
  if (OPENID_SCOPES.includes(scope.name)) {
    throw new PlatformError("conflict", `The scope ${scope.name} is defined by OpenID Connect.`);
  }
  if (scope.name === USE_SCOPE)
    throw new PlatformError("conflict", `The scope ${USE_SCOPE} is part of the service.`);
  if (scope.permissions.length === 0 && scope.roles.length === 0)
    throw new PlatformError("validation_failed", "A scope needs permissions or roles.");
  await requireRoles(trx, scope.roles);
  requireHeld(scope.permissions, grantor);
  await requireGrantable(trx, scope.roles, grantor);
  // Other services read a scope of this form as the permission of the same name.
  if (PERMISSION.test(scope.name)) requireHeld([scope.name], grantor);
  if (scope.first_party) requireAdministrator(grantor, "mark a scope as first-party");
  if (!(await removeScope(trx, scope.name, grantor))) await requireRoom(trx);
  await trx
    .insertInto("auth_scopes")
    .values({
      name: scope.name,
      description: scope.description,
      first_party: scope.first_party ? 1 : 0,
      created_at: nowMs,
    })
    .execute();
  for (const permission of new Set(scope.permissions)) {
    await trx
      .insertInto("auth_scope_permissions")
      .values({ scope: scope.name, permission })
      .execute();
  }
  for (const role of new Set(scope.roles)) {
    await trx.insertInto("auth_scope_roles").values({ scope: scope.name, role }).execute();
  }
}

/** Deletes a scope; the grantor must hold what it conveys. Returns false if there was none. */
export async function removeScope(
  trx: PolicyTransaction,
  name: string,
  grantor: Grantor,
): Promise<boolean> {
  const scope = await trx
    .selectFrom("auth_scopes")
    .select("first_party")
    .where("name", "=", name)
    .executeTakeFirst();
  if (scope === undefined) return false;
  if (scope.first_party === 1) requireAdministrator(grantor, "change a first-party scope");
  const rows = await trx
    .selectFrom("auth_scope_permissions")
    .select("permission")
    .where("scope", "=", name)
    .execute();
  requireHeld(
    rows.map(({ permission }) => permission),
    grantor,
  );
  const mapped = await trx
    .selectFrom("auth_scope_roles")
    .select("role")
    .where("scope", "=", name)
    .execute();
  await requireGrantable(
    trx,
    mapped.map(({ role }) => role),
    grantor,
  );
  await trx.deleteFrom("auth_scopes").where("name", "=", name).execute();
  return true;
}

/** Throws 409 if a scope maps to the role. */
export async function requireUnmapped(trx: PolicyTransaction, role: string): Promise<void> {
  const used = await trx
    .selectFrom("auth_scope_roles")
    .select("scope")
    .where("role", "=", role)
    .executeTakeFirst();
  if (used === undefined) return;
  throw new PlatformError("conflict", `The scope ${used.scope} maps to the role ${role}.`);
}

/**
 * Throws 403 for non-administrators if a first-party scope maps to the role or to a role that inherits from it:
 * administrators decide what first-party clients get without consent.
 */
export async function requireConsentKept(
  trx: PolicyTransaction,
  role: string,
  grantor: Grantor,
): Promise<void> {
  if (grantor === undefined) return;
  const mapped = await trx
    .selectFrom("auth_scope_roles")
    .innerJoin("auth_scopes", "name", "scope")
    .select("role")
    .where("first_party", "=", 1)
    .execute();
  if (mapped.length === 0) return;
  const parents = await trx.selectFrom("auth_role_parents").selectAll().execute();
  const conveyed = inheritRoles(
    mapped.map((row) => row.role),
    parents,
  );
  if (conveyed.includes(role)) requireAdministrator(grantor, "change a role of first-party scopes");
}

async function requireRoom(trx: PolicyTransaction): Promise<void> {
  const { scopes } = await trx
    .selectFrom("auth_scopes")
    .select((select) => select.fn.countAll<number>().as("scopes"))
    .executeTakeFirstOrThrow();
  if (scopes >= SCOPES_MAX) {
    throw new PlatformError("conflict", `At most ${SCOPES_MAX} scopes can be created.`);
  }
}
