// Routes of administrators for what a user can do: ways to sign in, effective permissions.
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import { z } from "zod";
import type { Factors } from "../factor/factors.ts";
import type { Passkeys } from "../factor/passkeys.ts";
import type { Rbac } from "../rbac/rights.ts";
import type { Users } from "../user/users.ts";
import { needPermission, type Identification } from "./principal.ts";
import { userFactorsAnswer, userPermissionsAnswer } from "./responses.ts";

export interface UserAccessRouteOptions {
  identification: Identification;
  users: Users;
  factors: Factors;
  passkeys: Passkeys;
  rbac: Rbac;
}

export function createUserAccessRoutes(options: UserAccessRouteOptions): ApiRoute[] {
  const { identification, users, factors, passkeys, rbac } = options;
  const tag = "Users";
  const params = z.object({ id: z.string().min(1).max(64) });
  return [
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/users/{id}/factors",
      summary: "The ways in which a user can sign in: password, passkeys, second factors",
      params,
      answer: userFactorsAnswer,
      access: needPermission("users:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        const row = await users.findRow(exchange.params.id);
        if (row === undefined) throw new PlatformError("not_found", "There is no such user.");
        const [own, keys] = await Promise.all([factors.list(row.id), passkeys.list(row.id)]);
        return { has_password: row.password_hash !== null, passkeys: keys, factors: own };
      },
    }),
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/users/{id}/permissions",
      summary: "The effective roles and permissions of a user, with the role that each comes from",
      params,
      answer: userPermissionsAnswer,
      access: needPermission("rbac:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        const userId = exchange.params.id;
        if ((await users.find(userId)) === undefined) {
          throw new PlatformError("not_found", "There is no such user.");
        }
        const { roles, permissions } = await rbac.findRights({ kind: "user", id: userId });
        const sources = await rbac.findSources(roles);
        return {
          roles,
          permissions: permissions.map((name) => ({ name, roles: sources.get(name) ?? [] })),
        };
      },
    }),
  ];
}
