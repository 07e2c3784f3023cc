// Changes of the policy, serialised and checked as a whole before they commit.
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import type { SubjectKind } from "../database/rbac.ts";
import type { AuthDatabase } from "../database/schema.ts";
import {
  countAdministrators,
  requireGrantable,
  requireRoles,
  type Grantor,
  type PolicyTransaction,
} from "./grant.ts";
import { inheritRoles, type Scope } from "./rights.ts";
import { putScope, removeScope, requireConsentKept, requireUnmapped } from "./scopes.ts";
import { requireRoleDutyLiftable } from "./second-factor-duty.ts";

/** Limits of the policy. */
export const POLICY_LIMITS = {
  roles: 1000,
  permissionsPerRole: 500,
  parentsPerRole: 50,
};

/** A role as the API shows it. */
export interface RoleItem {
  name: string;
  description: string;
  permissions: string[];
  parents: string[];
  builtin: boolean;
}

/** Kind of change of a list. */
export type ListChange = "add" | "replace" | "remove";

/** Roles, bindings and scopes in the database. */
export class PolicyStore {
  readonly #database: AuthDatabase;
  readonly #clock: Clock;

  constructor(database: AuthDatabase, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /**
   * Runs a change that may affect rights or administrators. Changes are serialised across all nodes, increase the
   * policy version, and are rolled back if no administrator would be left.
   */
  change<T>(work: (trx: PolicyTransaction) => Promise<T>): Promise<T> {
    return this.#database.transaction(async (trx) => {
      // The update is the lock.
      await trx
        .updateTable("auth_policy")
        .set((value) => ({ version: value("version", "+", 1) }))
        .execute();
      const before = await countAdministrators(trx);
      const result = await work(trx);
      if (before > 0 && (await countAdministrators(trx)) === 0) {
        throw new PlatformError("conflict", "No administrator would be left.");
      }
      return result;
    });
  }

  async listRoles(): Promise<RoleItem[]> {
    const { db } = this.#database;
    const [roles, permissions, parents] = await Promise.all([
      db.selectFrom("auth_roles").selectAll().orderBy("name").execute(),
      db.selectFrom("auth_role_permissions").selectAll().orderBy("permission").execute(),
      db.selectFrom("auth_role_parents").selectAll().orderBy("parent").execute(),
    ]);
    const permissionsByRole = Map.groupBy(permissions, ({ role }) => role);
    const parentsByRole = Map.groupBy(parents, ({ role }) => role);
    return roles.map(({ name, description, builtin }) => ({
      name,
      description,
      permissions: (permissionsByRole.get(name) ?? []).map(({ permission }) => permission),
      parents: (parentsByRole.get(name) ?? []).map(({ parent }) => parent),
      builtin: builtin === 1,
    }));
  }

  async findRole(name: string): Promise<RoleItem> {
    const role = (await this.listRoles()).find((item) => item.name === name);
    if (role === undefined) throw new PlatformError("not_found", `There is no role ${name}.`);
    return role;
  }

  createRole(role: Omit<RoleItem, "builtin">, grantor: Grantor): Promise<void> {
    return this.change(async (trx) => {
      const existing = await trx.selectFrom("auth_roles").select("name").execute();
      if (existing.some(({ name }) => name === role.name)) {
        throw new PlatformError("conflict", `The role ${role.name} already exists.`);
      }
      if (existing.length >= POLICY_LIMITS.roles) {
        throw new PlatformError("conflict", `At most ${POLICY_LIMITS.roles} roles can be created.`);
      }
      await trx
        .insertInto("auth_roles")
        .values({
          name: role.name,
          description: role.description,
          builtin: 0,
          created_at: this.#clock.now(),
        })
        .execute();
      await setPermissions(trx, role.name, role.permissions);
      await setParents(trx, role.name, role.parents);
      await requireGrantable(trx, [role.name], grantor);
    });
  }

  deleteRole(name: string, grantor: Grantor): Promise<void> {
    return this.change(async (trx) => {
      await requireChangeable(trx, name);
      await requireGrantable(trx, [name], grantor);
      const used = await trx
        .selectFrom("auth_role_parents")
        .select("role")
        .where("parent", "=", name)
        .executeTakeFirst();
      if (used !== undefined) {
        throw new PlatformError("conflict", `The role ${used.role} inherits from it.`);
      }
      await requireUnmapped(trx, name);
      await requireRoleDutyLiftable(trx, [name], { kind: "role", id: name }, grantor);
      await trx.deleteFrom("auth_role_bindings").where("role", "=", name).execute();
      await trx.deleteFrom("auth_roles").where("name", "=", name).execute();
    });
  }

  /** Changes the permissions of a role. */
  changePermissions(
    role: string,
    change: ListChange,
    permissions: readonly string[],
    grantor: Grantor,
  ): Promise<void> {
    return this.#changeRole(role, grantor, async (trx) => {
      const rows = await trx
        .selectFrom("auth_role_permissions")
        .select("permission")
        .where("role", "=", role)
        .execute();
      const old = rows.map(({ permission }) => permission);
      await setPermissions(trx, role, applyChange(old, change, permissions));
    });
  }

  /** Changes the parents of a role. */
  changeParents(
    role: string,
    change: ListChange,
    parents: readonly string[],
    grantor: Grantor,
  ): Promise<void> {
    return this.#changeRole(role, grantor, async (trx) => {
      const rows = await trx
        .selectFrom("auth_role_parents")
        .select("parent")
        .where("role", "=", role)
        .execute();
      const old = rows.map(({ parent }) => parent);
      const wanted = applyChange(old, change, parents);
      const removed = old.filter((parent) => !wanted.includes(parent));
      await requireRoleDutyLiftable(trx, removed, { kind: "role", id: role }, grantor);
      await setParents(trx, role, wanted);
    });
  }

  /** Roles bound directly to the subject. */
  async listBindings(kind: SubjectKind, id: string): Promise<string[]> {
    const rows = await this.#database.db
      .selectFrom("auth_role_bindings")
      .select("role")
      .where("subject_kind", "=", kind)
      .where("subject_id", "=", id)
      .orderBy("role")
      .execute();
    return rows.map(({ role }) => role);
  }

  /** Changes the roles bound to a user, a group or a client. */
  changeBindings(
    subject: { kind: SubjectKind; id: string },
    change: ListChange,
    roles: readonly string[],
    grantor: Grantor,
  ): Promise<void> {
    return this.change(async (trx) => {
      // Bindings of a deleted client can be removed.
      if (subject.kind !== "client" || change !== "remove") await requireSubject(trx, subject);
      const rows = await trx
        .selectFrom("auth_role_bindings")
        .select("role")
        .where("subject_kind", "=", subject.kind)
        .where("subject_id", "=", subject.id)
        .execute();
      const old = new Set(rows.map(({ role }) => role));
      const wanted = new Set(applyChange([...old], change, roles));
      await requireRoles(trx, [...wanted]);
      const touched = [...old.symmetricDifference(wanted)];
      await requireGrantable(trx, touched, grantor);
      const removed = [...old.difference(wanted)];
      const { kind, id } = subject;
      if (kind !== "client") await requireRoleDutyLiftable(trx, removed, { kind, id }, grantor);
      if (removed.length > 0) {
        await trx
          .deleteFrom("auth_role_bindings")
          .where("subject_kind", "=", subject.kind)
          .where("subject_id", "=", subject.id)
          .where("role", "in", removed)
          .execute();
      }
      for (const role of wanted.difference(old)) {
        await trx
          .insertInto("auth_role_bindings")
          .values({ role, subject_kind: subject.kind, subject_id: subject.id })
          .execute();
      }
    });
  }

  /**
   * Creates or replaces a scope. Tokens with the scope convey its permissions and those of its roles, so the grantor
   * must hold the previous and the new ones.
   */
  putScope(scope: Scope, grantor: Grantor): Promise<void> {
    return this.change((trx) => putScope(trx, scope, grantor, this.#clock.now()));
  }

  /** Deletes a scope; false if there was none. */
  deleteScope(name: string, grantor: Grantor): Promise<boolean> {
    return this.change((trx) => removeScope(trx, name, grantor));
  }

  // The grantor must hold the role before the change as well: otherwise they could weaken it.
  #changeRole(
    role: string,
    grantor: Grantor,
    work: (trx: PolicyTransaction) => Promise<void>,
  ): Promise<void> {
    return this.change(async (trx) => {
      await requireChangeable(trx, role);
      await requireGrantable(trx, [role], grantor);
      await requireConsentKept(trx, role, grantor);
      await work(trx);
      await requireGrantable(trx, [role], grantor);
    });
  }
}

async function requireChangeable(trx: PolicyTransaction, name: string): Promise<void> {
  const role = await trx
    .selectFrom("auth_roles")
    .select("builtin")
    .where("name", "=", name)
    .executeTakeFirst();
  if (role === undefined) throw new PlatformError("not_found", `There is no role ${name}.`);
  if (role.builtin === 1)
    throw new PlatformError("conflict", `The role ${name} cannot be changed.`);
}

async function requireSubject(
  trx: PolicyTransaction,
  subject: { kind: SubjectKind; id: string },
): Promise<void> {
  const row =
    subject.kind === "client"
      ? await trx
          .selectFrom("auth_oauth_clients")
          .select("client_id")
          .where("client_id", "=", subject.id)
          .executeTakeFirst()
      : await trx
          .selectFrom(subject.kind === "user" ? "auth_users" : "auth_groups")
          .select("id")
          .where("id", "=", subject.id)
          .executeTakeFirst();
  if (row === undefined) throw new PlatformError("not_found", `There is no such ${subject.kind}.`);
}

async function setPermissions(
  trx: PolicyTransaction,
  role: string,
  permissions: readonly string[],
): Promise<void> {
  const wanted = takeDistinct(permissions, POLICY_LIMITS.permissionsPerRole, "permissions");
  await trx.deleteFrom("auth_role_permissions").where("role", "=", role).execute();
  if (wanted.length === 0) return;
  await trx
    .insertInto("auth_role_permissions")
    .values(wanted.map((permission) => ({ role, permission })))
    .execute();
}

async function setParents(
  trx: PolicyTransaction,
  role: string,
  parents: readonly string[],
): Promise<void> {
  const wanted = takeDistinct(parents, POLICY_LIMITS.parentsPerRole, "parents");
  await requireRoles(trx, wanted);
  await trx.deleteFrom("auth_role_parents").where("role", "=", role).execute();
  if (wanted.length === 0) return;
  await trx
    .insertInto("auth_role_parents")
    .values(wanted.map((parent) => ({ role, parent })))
    .execute();
  const all = await trx.selectFrom("auth_role_parents").selectAll().execute();
  if (inheritRoles(wanted, all).includes(role)) {
    throw new PlatformError("conflict", `The role ${role} would inherit from itself.`);
  }
}

function takeDistinct(items: readonly string[], max: number, noun: string): string[] {
  const distinct = [...new Set(items)];
  if (distinct.length <= max) return distinct;
  throw new PlatformError("conflict", `A role has at most ${max} ${noun}.`);
}

function applyChange(
  old: readonly string[],
  change: ListChange,
  items: readonly string[],
): string[] {
  switch (change) {
    case "add":
      return [...new Set([...old, ...items])];
    case "replace":
      return [...new Set(items)];
    case "remove":
      return old.filter((item) => !items.includes(item));
    default:
      return change satisfies never;
  }
}
