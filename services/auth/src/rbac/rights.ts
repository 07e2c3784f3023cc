// Effective rights of a user or a client: bound roles, their ancestors, and the permissions of all of them.
import type { AuthDatabase } from "../database/schema.ts";
import { generalize } from "./permission.ts";

/** Scopes that follow from permissions of roles for one thing. */
const NAMED_MAX = 500;

/** The user or client whose rights are read. */
interface Subject {
  kind: "user" | "client";
  id: string;
}

/** Effective rights at one moment. */
export interface Rights {
  /** Bound roles and their ancestors, sorted. */
  readonly roles: readonly string[];
  /** Permissions of these roles, wildcards unexpanded, sorted. */
  readonly permissions: readonly string[];
  /** Increases with every change of the policy. */
  readonly policyVersion: number;
}

/** Scopes of OpenID Connect, which need no role and convey no permission. */
export const OPENID_SCOPES: readonly string[] = ["openid", "offline_access", "profile", "email"];

/**
 * Lets an application use the platform's services with the user's roles that it may act with. It conveys no permission:
 * topic rules and storage policies of the roles decide.
 */
export const USE_SCOPE = "platform:use";

/** A scope that tokens can carry. */
export interface Scope {
  readonly name: string;
  readonly description: string;
  /** A user needs one of these to get the scope; a token with the scope conveys those that the user has. */
  readonly permissions: readonly string[];
  /**
   * Holders of one of these roles, or of all permissions of one, get the scope as well. It conveys the permissions
   * that the roles have when the token is used.
   */
  readonly roles: readonly string[];
  /** True if first-party clients get the scope without the user's consent. */
  readonly first_party: boolean;
}

/** A scope with the current permissions of its roles, inherited ones included. */
export interface ScopeRights {
  readonly name: string;
  readonly first_party: boolean;
  readonly permissions: readonly string[];
  readonly roles: readonly { readonly name: string; readonly permissions: readonly string[] }[];
}

/** Reads the policy. */
export interface Rbac {
  /** Rights of a user, also through groups, or of an OAuth client. */
  findRights(subject: Subject): Promise<Rights>;
  /** The roles, of those given, that have each permission themselves. */
  findSources(roles: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>>;
  /** The first of the roles that does not exist; `undefined` if all do. */
  findMissingRole(roles: readonly string[]): Promise<string | undefined>;
  /** Number that rises with each change of the policy. */
  readPolicyVersion(): Promise<number>;
  /** All scopes, by name. */
  listScopes(): Promise<readonly Scope[]>;
  /** All scopes with the permissions that they convey. */
  listScopeRights(): Promise<readonly ScopeRights[]>;
}

/** Creates the reader of the policy. */
export function createRbac(database: AuthDatabase): Rbac {
  const { db } = database;
  const readPolicyVersion = async (): Promise<number> => {
    const { version } = await db
      .selectFrom("auth_policy")
      .select("version")
      .executeTakeFirstOrThrow();
    return version;
  };
  const listScopes = async (): Promise<Scope[]> => {
    const [scopes, permissions, roles] = await Promise.all([
      db.selectFrom("auth_scopes").selectAll().orderBy("name").execute(),
      db.selectFrom("auth_scope_permissions").selectAll().orderBy("permission").execute(),
      db.selectFrom("auth_scope_roles").selectAll().orderBy("role").execute(),
    ]);
    const permissionsOf = groupBy(permissions, ({ scope, permission }) => [scope, permission]);
    const rolesOf = groupBy(roles, ({ scope, role }) => [scope, role]);
    const own = scopes.map(({ name, description, first_party: isFirst }) => {
      const parts = { permissions: permissionsOf(name), roles: rolesOf(name) };
      return { name, description, first_party: isFirst === 1, ...parts };
    });
    return addDerived(own, await listNamed(db));
  };
  return {
    readPolicyVersion,
    findSources: async (roles) => {
      if (roles.length === 0) return new Map();
      const rows = await db
        .selectFrom("auth_role_permissions")
        .select(["permission", "role"])
        .where("role", "in", roles)
        .orderBy("role")
        .execute();
      const sources = new Map<string, string[]>();
      for (const { permission, role } of rows) {
        sources.set(permission, [...(sources.get(permission) ?? []), role]);
      }
      return sources;
    },
    findMissingRole: async (roles) => {
      if (roles.length === 0) return undefined;
      const rows = await db
        .selectFrom("auth_roles")
        .select("name")
        .where("name", "in", roles)
        .execute();
      return roles.find((role) => !rows.some(({ name }) => name === role));
    },
    findRights: async (subject) => {
      const [bound, parents, policyVersion] = await Promise.all([
        db
          .selectFrom("auth_role_bindings")
          .select("role")
          .where((where) =>
            where.or([
              where.and([
                where("subject_kind", "=", subject.kind),
                where("subject_id", "=", subject.id),
              ]),
              where.and([
                where("subject_kind", "=", "group"),
                where("subject_id", "in", (groups) =>
                  groups
                    .selectFrom("auth_group_members")
                    .select("group_id")
                    .where("user_id", "=", subject.kind === "user" ? subject.id : ""),
                ),
              ]),
            ]),
          )
          .execute(),
        db.selectFrom("auth_role_parents").selectAll().execute(),
        readPolicyVersion(),
      ]);
      const roles = inheritRoles(
        bound.map(({ role }) => role),
        parents,
      );
      const permissions =
        roles.length === 0
          ? []
          : await db
              .selectFrom("auth_role_permissions")
              .select("permission")
              .distinct()
              .where("role", "in", roles)
              .orderBy("permission")
              .execute();
      return {
        roles,
        permissions: permissions.map(({ permission }) => permission),
        policyVersion,
      };
    },
    listScopes,
    listScopeRights: async () => {
      const scopes = await listScopes();
      const mapped = [...new Set(scopes.flatMap(({ roles }) => roles))];
      const permissionsOf = await readRolePermissions(db, mapped);
      return scopes.map(({ name, first_party, permissions, roles }) => ({
        name,
        first_party,
        permissions,
        roles: roles.map((role) => ({ name: role, permissions: permissionsOf(role) })),
      }));
    },
  };
}

/** Lists the values of rows by their scope. */
function groupBy<Row>(
  rows: readonly Row[],
  read: (row: Row) => [scope: string, value: string],
): (scope: string) => string[] {
  const byScope = Map.groupBy(rows.map(read), ([scope]) => scope);
  return (scope) => (byScope.get(scope) ?? []).map(([, value]) => value);
}

/** Permissions of roles for one thing alone, at most 500. */
async function listNamed(db: AuthDatabase["db"]): Promise<string[]> {
  const rows = await db
    .selectFrom("auth_role_permissions")
    .select("permission")
    .distinct()
    .where("permission", "like", "%:%:%")
    .orderBy("permission")
    .limit(NAMED_MAX)
    .execute();
  return rows.map(({ permission }) => permission);
}

/** Adds scopes: a permission of a role for one thing is one if the permission for all such things is. */
function addDerived(scopes: readonly Scope[], named: readonly string[]): Scope[] {
  const byName = new Map(scopes.map((scope) => [scope.name, scope]));
  const derived = named.flatMap((name) => {
    const general = byName.get(generalize(name) ?? "");
    if (general === undefined || byName.has(name)) return [];
    const { first_party, description } = general;
    return [{ name, description, permissions: [name], roles: [], first_party }];
  });
  return [...scopes, ...derived];
}

// Returns a function that lists the permissions of a role, inherited ones included.
async function readRolePermissions(
  db: AuthDatabase["db"],
  roles: readonly string[],
): Promise<(role: string) => string[]> {
  if (roles.length === 0) return () => [];
  const parents = await db.selectFrom("auth_role_parents").selectAll().execute();
  const rows = await db
    .selectFrom("auth_role_permissions")
    .selectAll()
    .where("role", "in", inheritRoles(roles, parents))
    .execute();
  const byRole = Map.groupBy(rows, ({ role }) => role);
  return (role) => [
    ...new Set(
      inheritRoles([role], parents).flatMap((name) =>
        (byRole.get(name) ?? []).map(({ permission }) => permission),
      ),
    ),
  ];
}

/** The roles and all of their ancestors, sorted. */
export function inheritRoles(
  bound: readonly string[],
  parents: readonly { role: string; parent: string }[],
): string[] {
  const parentsByRole = Map.groupBy(parents, ({ role }) => role);
  const found = new Set<string>();
  const open = [...bound];
  for (let role = open.pop(); role !== undefined; role = open.pop()) {
    if (found.has(role)) continue;
    found.add(role);
    for (const { parent } of parentsByRole.get(role) ?? []) open.push(parent);
  }
  return [...found].sort();
}
