// Routes of roles, bindings and scopes.
import { PlatformError } from "@platform/kernel/errors";
import {
  defineRoute,
  type ApiMethod,
  type ApiRoute,
  type Exchange,
  NO_BODY,
} from "@platform/kernel/http";
import { z } from "zod";
import type { AuditLog } from "../audit/audit-log.ts";
import type { SubjectKind } from "../database/rbac.ts";
import type { OAuth } from "../oauth/oauth.ts";
import { PERMISSION } from "../rbac/permission.ts";
import { POLICY_LIMITS, type ListChange, type PolicyStore } from "../rbac/policy-store.ts";
import type { Rbac, Scope } from "../rbac/rights.ts";
import { createAuditRecorder } from "./audit-recorder.ts";
import { needPermission, type Identification } from "./principal.ts";
import { bindingAnswer, role, rolesAnswer, scope, scopesAnswer } from "./responses.ts";
import { CHANGED, requireVersion, showVersion } from "./versions.ts";

const roleName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_.-]{0,62}$/, "lower-case letters, digits and . _ -");
const permission = z
  .string()
  .regex(PERMISSION, "<resource>:<action>, * on either side, or data:<action>:<project>");
const permissions = z.array(permission).max(POLICY_LIMITS.permissionsPerRole);
const roles = z.array(roleName).max(POLICY_LIMITS.parentsPerRole);
const description = z.string().max(512).default("");
const id = z.string().min(1).max(255);
// RFC 6749 section 3.3: printable, without blank, quote and backslash.
const scopeName = z
  .string()
  .regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/, "1 to 128 printable characters");

const CHANGES: readonly (readonly [ApiMethod, ListChange, string])[] = [
  ["POST", "add", "Add"],
  ["PUT", "replace", "Replace"],
  ["DELETE", "remove", "Remove"],
];
const SUBJECTS: readonly (readonly [string, SubjectKind])[] = [
  ["users", "user"],
  ["groups", "group"],
  ["clients", "client"],
];

/** Options of these routes. */
export interface RbacRouteOptions {
  identification: Identification;
  policy: PolicyStore;
  rbac: Rbac;
  audit: AuditLog;
  oauth: Pick<OAuth, "refresh">;
}

export function createRbacRoutes(options: RbacRouteOptions): ApiRoute[] {
  return [
    ...createRoleRoutes(options),
    ...SUBJECTS.flatMap(([path, kind]) => createBindingRoutes(options, path, kind)),
    ...createScopeRoutes(options),
  ];
}

function createRoleRoutes(options: RbacRouteOptions): ApiRoute[] {
  const { identification, policy } = options;
  const tag = "Roles";
  const write = createWriter(options);
  const params = z.object({ role: roleName });
  return [
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/rbac/roles",
      summary: "All roles",
      answer: rolesAnswer,
      access: needPermission("rbac:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        return { roles: await policy.listRoles() };
      },
    }),
    defineRoute({
      tag,
      method: "POST",
      path: "/api/v1/rbac/roles",
      summary: "Create a role",
      status: 201,
      body: z.strictObject({
        name: roleName,
        permissions: permissions.default([]),
        parents: roles.default([]),
        description,
      }),
      problems: { 409: "The role exists, or would inherit from itself" },
      answer: role,
      access: needPermission("rbac:write"),
      handle: (exchange) =>
        write(exchange, "role.create", `role:${exchange.body.name}`, async (grantor) => {
          await policy.createRole(exchange.body, grantor);
          return policy.findRole(exchange.body.name);
        }),
    }),
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/rbac/roles/{role}",
      summary: "A role",
      description: "The answer has an ETag for If-Match.",
      params,
      answer: role,
      access: needPermission("rbac:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        const found = await policy.findRole(exchange.params.role);
        showVersion(exchange, found);
        return found;
      },
    }),
    defineRoute({
      tag,
      method: "DELETE",
      path: "/api/v1/rbac/roles/{role}",
      summary: "Delete a role and its bindings",
      params,
      problems: { 409: "Another role inherits from the role, or a scope maps to it" },
      access: needPermission("rbac:write"),
      answer: NO_BODY,
      handle: (exchange) =>
        write(exchange, "role.delete", `role:${exchange.params.role}`, (grantor) =>
          policy.deleteRole(exchange.params.role, grantor),
        ),
    }),
    ...CHANGES.flatMap(([method, change, verb]) => [
      defineRoute({
        tag,
        method,
        path: "/api/v1/rbac/roles/{role}/permissions",
        summary: `${verb} permissions of a role`,
        params,
        body: z.strictObject({ permissions }),
        problems: CHANGED,
        answer: role,
        access: needPermission("rbac:write"),
        handle: (exchange) => {
          const { role } = exchange.params;
          return write(exchange, `role.permissions.${change}`, `role:${role}`, async (grantor) => {
            await requireVersion(exchange, () => policy.findRole(role));
            await policy.changePermissions(role, change, exchange.body.permissions, grantor);
            return policy.findRole(role);
          });
        },
      }),
      defineRoute({
        tag,
        method,
        path: "/api/v1/rbac/roles/{role}/parents",
        summary: `${verb} parents of a role`,
        params,
        body: z.strictObject({ parents: roles }),
        problems: { ...CHANGED, 409: "The role would inherit from itself" },
        answer: role,
        access: needPermission("rbac:write"),
        handle: (exchange) => {
          const { role } = exchange.params;
          return write(exchange, `role.parents.${change}`, `role:${role}`, async (grantor) => {
            await requireVersion(exchange, () => policy.findRole(role));
            await policy.changeParents(role, change, exchange.body.parents, grantor);
            return policy.findRole(role);
          });
        },
      }),
    ]),
  ];
}

function createBindingRoutes(
  options: RbacRouteOptions,
  path: string,
  kind: SubjectKind,
): ApiRoute[] {
  const { identification, policy, rbac } = options;
  const tag = "Roles";
  const write = createWriter(options);
  const params = z.object({ id });
  const show = async (subject: string) => ({
    [`${kind}_id`]: subject,
    roles: await policy.listBindings(kind, subject),
    ...(kind === "group"
      ? {}
      : { effective_permissions: (await rbac.findRights({ kind, id: subject })).permissions }),
  });
  return [
    defineRoute({
      tag,
      method: "GET",
      path: `/api/v1/rbac/${path}/{id}/roles`,
      summary: `Roles of a ${kind}`,
      description: "The answer has an ETag for If-Match.",
      params,
      answer: bindingAnswer,
      requires: ["rbac:read"],
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const isOwn = principal.kind === kind && principal.id === exchange.params.id;
        if (!isOwn) identification.requirePermission(principal, "rbac:read");
        else if (kind === "user") identification.requireUser(exchange);
        const shown = await show(exchange.params.id);
        showVersion(exchange, shown.roles);
        return shown;
      },
    }),
    ...CHANGES.map(([method, change, verb]) =>
      defineRoute({
        tag,
        method,
        path: `/api/v1/rbac/${path}/{id}/roles`,
        summary: `${verb} roles of a ${kind}`,
        params,
        body: z.strictObject({ roles }),
        problems: {
          403: "You lack a permission that you would grant or revoke",
          409: "No administrator would be left",
          ...CHANGED,
        },
        answer: bindingAnswer,
        access: needPermission("rbac:write"),
        handle: (exchange) => {
          const subject = exchange.params.id;
          return write(exchange, `binding.${change}`, `${kind}:${subject}`, async (grantor) => {
            await requireVersion(exchange, () => policy.listBindings(kind, subject));
            await policy.changeBindings(
              { kind, id: subject },
              change,
              exchange.body.roles,
              grantor,
            );
            return show(subject);
          });
        },
      }),
    ),
  ];
}

function createScopeRoutes(options: RbacRouteOptions): ApiRoute[] {
  const { identification, policy, rbac, oauth } = options;
  const tag = "Scopes";
  const write = createWriter(options);
  // At least one permission or role is required: a scope without either conveys nothing.
  const definition = {
    permissions: permissions.default([]),
    roles: roles.default([]),
    description,
    first_party: z.boolean().default(false),
  };
  const problems = {
    403: "You lack a permission that the scope conveys or conveyed, or the scope is first-party and you are not an administrator",
    404: "One of the roles does not exist",
    409: "The scope is defined by OpenID Connect",
  };
  const put = (exchange: Exchange<unknown, unknown, unknown>, item: Scope): Promise<Scope> =>
    write(exchange, "scope.put", `scope:${item.name}`, async (grantor) => {
      await policy.putScope(item, grantor);
      // Clients with it can be registered immediately.
      await oauth.refresh();
      return item;
    });
  return [
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/auth/scopes",
      summary: "Scopes with their permissions and roles",
      answer: scopesAnswer,
      access: needPermission("rbac:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        return { scopes: await rbac.listScopes() };
      },
    }),
    defineRoute({
      tag,
      method: "POST",
      path: "/api/v1/auth/scopes",
      summary: "Create or replace a scope",
      status: 201,
      body: z.strictObject({ name: scopeName, ...definition }),
      problems,
      answer: scope,
      access: needPermission("rbac:write"),
      handle: (exchange) => put(exchange, exchange.body),
    }),
    defineRoute({
      tag,
      method: "PUT",
      path: "/api/v1/auth/scopes/{name}",
      summary: "Create or replace a scope",
      params: z.object({ name: scopeName }),
      body: z.strictObject(definition),
      problems,
      answer: scope,
      access: needPermission("rbac:write"),
      handle: (exchange) => put(exchange, { name: exchange.params.name, ...exchange.body }),
    }),
    defineRoute({
      tag,
      method: "DELETE",
      path: "/api/v1/auth/scopes/{name}",
      summary: "Delete a scope",
      params: z.object({ name: scopeName }),
      access: needPermission("rbac:write"),
      answer: NO_BODY,
      handle: (exchange) =>
        write(exchange, "scope.delete", `scope:${exchange.params.name}`, async (grantor) => {
          if (!(await policy.deleteScope(exchange.params.name, grantor))) {
            throw new PlatformError("not_found", "There is no such scope.");
          }
          await oauth.refresh();
        }),
    }),
  ];
}

// Every change of the policy is audited.
function createWriter(options: RbacRouteOptions) {
  const record = createAuditRecorder(options);
  return async <T>(
    exchange: Exchange<unknown, unknown, unknown>,
    action: string,
    target: string,
    work: (grantor: { permissions: readonly string[] }) => Promise<T>,
  ): Promise<T> => {
    const principal = options.identification.require(exchange);
    const result = await work(principal.rights);
    await record(exchange, principal, action, target, { change: exchange.body });
    return result;
  };
}
