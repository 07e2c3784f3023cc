// What a user or a client may do: bound roles, their ancestors, and all of their permissions.
import type { AuthDatabase } from "../schema.ts";

/** Whose rights. */
export type Subject = { kind: "user" | "client"; id: string };

/** Effective rights at one moment. */
export interface Rights {
  /** Bound roles and all that they inherit from, sorted. */
  readonly roles: readonly string[];
  /** All permissions of these roles, wildcards as they are written, sorted. */
  readonly permissions: readonly string[];
  /** Goes up with every change of the policy. */
  readonly policyVersion: number;
}

/** A scope that tokens can carry. */
export interface Scope {
  readonly name: string;
  readonly description: string;
  /** Whoever has one of these may be given the scope. */
  readonly permissions: readonly string[];
}

/** Reads the policy. */
export interface Rbac {
  /** Rights of a user (through groups as well) or of an OAuth client. */
  findRights(subject: Subject): Promise<Rights>;
  /** All scopes, by name. */
  listScopes(): Promise<readonly Scope[]>;
}

/** The policy over the database. */
export function createRbac(database: AuthDatabase): Rbac {
  const { db } = database;
  return {
    findRights: async (subject) => {
      const [bound, parents, policy] = await Promise.all([
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
        db.selectFrom("auth_policy").select("version").executeTakeFirstOrThrow(),
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
        policyVersion: policy.version,
      };
    },
    listScopes: async () => {
      const [scopes, permissions] = await Promise.all([
        db.selectFrom("auth_scopes").selectAll().orderBy("name").execute(),
        db.selectFrom("auth_scope_permissions").selectAll().orderBy("permission").execute(),
      ]);
      const byScope = Map.groupBy(permissions, ({ scope }) => scope);
      return scopes.map(({ name, description }) => ({
        name,
        description,
        permissions: (byScope.get(name) ?? []).map(({ permission }) => permission),
      }));
    },
  };
}

/** The roles and all their ancestors, sorted. */
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
