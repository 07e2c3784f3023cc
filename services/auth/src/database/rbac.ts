// Tables of roles, permissions, bindings and scopes.
import type { Migration } from "@platform/kernel/db";

/** Subjects that roles are bound to. */
export type SubjectKind = "user" | "group" | "client";

/** A role. Its permissions and parents are in separate tables. */
interface RoleRow {
  name: string;
  description: string;
  /** 1 for roles that are part of the service and cannot be changed. */
  builtin: number;
  created_at: number;
}

/** Tables of roles and scopes. */
export interface RbacTables {
  auth_roles: RoleRow;
  auth_role_permissions: { role: string; permission: string };
  auth_role_parents: { role: string; parent: string };
  auth_role_bindings: { role: string; subject_kind: SubjectKind; subject_id: string };
  /** OAuth scopes. A user needs one of a scope's permissions to get it. */
  auth_scopes: {
    name: string;
    description: string;
    /** 1 if first-party clients get the scope without the user's consent. */
    first_party: number;
    created_at: number;
  };
  auth_scope_permissions: { scope: string; permission: string };
  /** Roles whose permissions a scope also conveys. */
  auth_scope_roles: { scope: string; role: string };
  /** One row: increases with every change of roles, bindings and scopes. */
  auth_policy: { id: number; version: number };
}

/** Permissions of this service's own API. Each is also a scope of the same name. */
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

/** Permissions that messaging and storage require. Each is also a scope of the same name; no role has them at first. */
const SERVICE_PERMISSIONS: readonly (readonly [permission: string, description: string])[] = [
  ["pulse:publish", "Publish messages"],
  ["pulse:subscribe", "Subscribe to messages and read them"],
  ["pulse:manage", "Manage topics, schemas and dead letters"],
  ["vault:read", "Read stored objects"],
  ["vault:write", "Store and delete objects"],
];

/** Permissions that mail and the tunnel require; as those above. */
const EDGE_PERMISSIONS: readonly (readonly [permission: string, description: string])[] = [
  ["notify:send", "Send mail"],
  ["notify:manage", "Manage templates, domains and suppressions, and read all mail"],
  ["notify:read", "Read figures and conditions of mail"],
  ["tunnel:open", "Open tunnels to local services"],
  ["tunnel:admin", "Manage the tunnels of all users"],
  ["tunnel:read", "Read figures and conditions of the tunnel"],
];

/** Permissions that the runtime requires; as those above. */
const RUNTIME_PERMISSIONS: readonly (readonly [permission: string, description: string])[] = [
  ["runtime:read", "See services, schedules and logs"],
  ["runtime:manage", "Restart and stop services, run schedules"],
];

/** Permissions that the data of projects requires; as those above. `data:read:NAME` is the right to one project. */
const DATA_PERMISSIONS: readonly (readonly [permission: string, description: string])[] = [
  ["data:read", "Read the tables of all projects, without hidden columns"],
  ["data:edit", "Change rows in the tables of all projects"],
  ["data:query", "Run statements on the databases of all projects, and read all columns"],
];

/** Permissions that the gateway requires; as those above. */
const GATE_PERMISSIONS: readonly (readonly [permission: string, description: string])[] = [
  ["gate:read", "See routes, requests and certificates of the gateway, without secrets"],
  ["gate:admin", "Manage the gateway"],
];

/** Permissions of administrators of a service, and of everything; as those above. */
const ADMIN_PERMISSIONS: readonly (readonly [permission: string, description: string])[] = [
  ["pulse:read", "Read figures and conditions of messaging"],
  ["pulse:admin", "Manage messaging for all tenants, and read all messages"],
  ["vault:admin", "Manage storage, and read and write all objects"],
  ["*:*", "Everything: administer all services of the platform"],
];

/** Scopes that are part of the service, named after their permissions. */
export const MANAGEMENT_SCOPES: ReadonlySet<string> = new Set([
  ...MANAGEMENT_PERMISSIONS.map(([permission]) => permission),
  "tokens:revoke",
]);

/** Scopes of all services of the platform. */
export const PLATFORM_SCOPES: readonly string[] = [
  ...MANAGEMENT_SCOPES,
  ...[
    ...SERVICE_PERMISSIONS,
    ...EDGE_PERMISSIONS,
    ...RUNTIME_PERMISSIONS,
    ...DATA_PERMISSIONS,
    ...GATE_PERMISSIONS,
    ...ADMIN_PERMISSIONS,
  ].map(([permission]) => permission),
];

/** Migrations of these tables. */
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
  {
    id: "0005-scopes-of-services",
    statements: () => SERVICE_PERMISSIONS.flatMap(addScope),
  },
  {
    id: "0006-scopes-of-mail-and-tunnel",
    statements: () => EDGE_PERMISSIONS.flatMap(addScope),
  },
  {
    id: "0007-scopes-of-the-runtime",
    statements: () => RUNTIME_PERMISSIONS.flatMap(addScope),
  },
  {
    id: "0008-scopes-of-the-gateway",
    statements: () => GATE_PERMISSIONS.flatMap(addScope),
  },
  {
    id: "0009-scopes-of-administrators",
    statements: () => ADMIN_PERMISSIONS.flatMap(addScope),
  },
  {
    id: "0010-scopes-of-data",
    statements: () => DATA_PERMISSIONS.flatMap(addScope),
  },
];

function addScope([permission, description]: readonly [string, string]): string[] {
  return [
    `insert into auth_scopes (name, description, created_at) values ('${permission}', '${description}', 0)
      on conflict do nothing`,
    // A scope of this name that an administrator has created keeps its permissions.
    `insert into auth_scope_permissions (scope, permission) select '${permission}', '${permission}'
      where not exists (select 1 from auth_scope_permissions where scope = '${permission}')
      and not exists (select 1 from auth_scope_roles where scope = '${permission}')`,
  ];
}
