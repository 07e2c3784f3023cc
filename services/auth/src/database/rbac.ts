// Tables of roles, permissions, bindings and scopes.
import type { Migration } from "@platform/kernel/db";

/** What roles are bound to. */
export type SubjectKind = "user" | "group" | "client";

/** A role; its permissions and parents have tables of their own. */
interface RoleRow {
  name: string;
  description: string;
  /** 1 for roles that come with the service and cannot be changed. */
  builtin: number;
  created_at: number;
}

/** The tables of this room. */
export interface RbacTables {
  auth_roles: RoleRow;
  auth_role_permissions: { role: string; permission: string };
  auth_role_parents: { role: string; parent: string };
  auth_role_bindings: { role: string; subject_kind: SubjectKind; subject_id: string };
  /** OAuth scopes and the permissions of which one is enough to be given the scope. */
  auth_scopes: {
    name: string;
    description: string;
    /** 1 if first-party clients get the scope without the user's consent. */
    first_party: number;
    created_at: number;
  };
  auth_scope_permissions: { scope: string; permission: string };
  /** Roles whose permissions a scope conveys as well. */
  auth_scope_roles: { scope: string; role: string };
  /** One row: counts up with every change of roles, bindings and scopes. */
  auth_policy: { id: number; version: number };
}

/** What the management of this service asks for; each is a scope of the same name. */
const MANAGEMENT_PERMISSIONS: readonly (readonly [permission: string, description: string])[] = [
  ["users:read", "See users and groups"],
  ["users:write", "Manage users and groups"],
  ["sessions:read", "See sessions of others"],
  ["sessions:write", "End sessions of others"],
  ["rbac:read", "See roles and bindings"],
  ["rbac:write", "Manage roles and bindings"],
  ["clients:read", "See OAuth clients"],
  ["clients:write", "Manage OAuth clients"],
  ["keys:write", "Rotate signing keys"],
  ["audit:read", "Read the audit log"],
  ["metrics:read", "Read metrics"],
  ["tokens:introspect", "Introspect and revoke tokens"],
];

/** Scopes that come with the service, by the names of their permissions. */
export const MANAGEMENT_SCOPES: ReadonlySet<string> = new Set([
  ...MANAGEMENT_PERMISSIONS.map(([permission]) => permission),
  "tokens:revoke",
]);

/** The history of these tables. */
export const RBAC_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-roles",
    statements: (t) => [
      `create table auth_roles (name ${t.text} primary key, description ${t.text} not null,
        builtin ${t.integer} not null default 0, created_at ${t.integer} not null)`,
      `create table auth_role_permissions (role ${t.text} not null references auth_roles (name) on delete cascade,
        permission ${t.text} not null, primary key (role, permission))`,
      `create table auth_role_parents (role ${t.text} not null references auth_roles (name) on delete cascade,
        parent ${t.text} not null references auth_roles (name), primary key (role, parent))`,
      `create table auth_role_bindings (role ${t.text} not null references auth_roles (name),
        subject_kind ${t.text} not null, subject_id ${t.text} not null,
        primary key (subject_kind, subject_id, role))`,
      "create index auth_role_bindings_by_role on auth_role_bindings (role)",
      `create table auth_scopes (name ${t.text} primary key, description ${t.text} not null, created_at ${t.integer} not null)`,
      `create table auth_scope_permissions (scope ${t.text} not null references auth_scopes (name) on delete cascade,
        permission ${t.text} not null, primary key (scope, permission))`,
      `create table auth_policy (id ${t.integer} primary key check (id = 1), version ${t.integer} not null)`,
      "insert into auth_policy (id, version) values (1, 1)",
      "insert into auth_roles (name, description, builtin, created_at) values ('admin', 'Everything', 1, 0)",
      "insert into auth_role_permissions (role, permission) values ('admin', '*:*')",
    ],
  },
  {
    id: "0002-management-scopes",
    statements: () =>
      MANAGEMENT_PERMISSIONS.flatMap(([permission, description]) => [
        `insert into auth_scopes (name, description, created_at) values ('${permission}', '${description}', 0)`,
        `insert into auth_scope_permissions (scope, permission) values ('${permission}', '${permission}')`,
      ]),
  },
  {
    id: "0003-scopes-of-first-party-clients",
    statements: (t) => [
      `alter table auth_scopes add column first_party ${t.integer} not null default 0`,
      "insert into auth_scopes (name, description, created_at) values ('tokens:revoke', 'Revoke tokens', 0) on conflict do nothing",
      `insert into auth_scope_permissions (scope, permission) select 'tokens:revoke', 'tokens:revoke'
        where not exists (select 1 from auth_scope_permissions where scope = 'tokens:revoke')`,
    ],
  },
  {
    id: "0004-roles-of-scopes",
    statements: (t) => [
      `create table auth_scope_roles (scope ${t.text} not null references auth_scopes (name) on delete cascade,
        role ${t.text} not null references auth_roles (name), primary key (scope, role))`,
      "create index auth_scope_roles_by_role on auth_scope_roles (role)",
    ],
  },
];
