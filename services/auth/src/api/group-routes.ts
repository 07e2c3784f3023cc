// Routes of administrators for groups.
import { defineRoute, pageQuery, readPage, type ApiRoute, NO_BODY } from "@platform/kernel/http";
import { z } from "zod";
import type { AuditLog } from "../audit/audit-log.ts";
import { formatTime } from "../session/sessions.ts";
import type { Groups } from "../user/groups.ts";
import { createAuditRecorder } from "./audit-recorder.ts";
import { needPermission, type Identification } from "./principal.ts";
import { groupAnswer, groupsAnswer, membersAnswer } from "./responses.ts";

const id = z.string().min(1).max(64);
const sortKey = z.string().max(512);

/** Options of these routes. */
export interface GroupRouteOptions {
  identification: Identification;
  groups: Groups;
  audit: AuditLog;
}

export function createGroupRoutes(options: GroupRouteOptions): ApiRoute[] {
  const { identification, groups } = options;
  const tag = "Groups";
  const record = createAuditRecorder(options);
  const params = z.object({ id });
  const memberParams = z.object({ id, user_id: id });
  return [
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/groups",
      summary: "Groups by name",
      query: pageQuery,
      answer: groupsAnswer,
      access: needPermission("users:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        const page = await readPage(exchange.query, {
          key: sortKey,
          read: (limit, after) => groups.list(limit, after),
          keyOf: ({ name }) => name,
        });
        const items = page.items.map(({ created_at, ...group }) => ({
          ...group,
          created_at: formatTime(created_at),
        }));
        return { groups: items, next_cursor: page.next_cursor };
      },
    }),
    defineRoute({
      tag,
      method: "POST",
      path: "/api/v1/groups",
      summary: "Create a group",
      status: 201,
      body: z.strictObject({ name: z.string().regex(/^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,127}$/u) }),
      answer: groupAnswer,
      access: needPermission("users:write"),
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const group = await groups.create(exchange.body.name);
        await record(exchange, principal, "group.create", `group:${group.id}`);
        return { group: { ...group, created_at: formatTime(group.created_at) } };
      },
    }),
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/groups/{id}",
      summary: "A group",
      params,
      answer: groupAnswer,
      access: needPermission("users:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        const group = await groups.find(exchange.params.id);
        return { group: { ...group, created_at: formatTime(group.created_at) } };
      },
    }),
    defineRoute({
      tag,
      method: "DELETE",
      path: "/api/v1/groups/{id}",
      summary: "Delete a group",
      params,
      access: needPermission("users:write"),
      answer: NO_BODY,
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        await groups.delete(exchange.params.id, principal.rights);
        await record(exchange, principal, "group.delete", `group:${exchange.params.id}`);
        return undefined;
      },
    }),
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/groups/{id}/members",
      summary: "Members of a group by id",
      params,
      query: pageQuery,
      answer: membersAnswer,
      access: needPermission("users:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        const page = await readPage(exchange.query, {
          key: sortKey,
          read: (limit, after) => groups.listMembers(exchange.params.id, limit, after),
          keyOf: (member) => member.id,
        });
        const members = page.items.map((member) => member.id);
        return { members, users: page.items, next_cursor: page.next_cursor };
      },
    }),
    ...(["PUT", "DELETE"] as const).map((method) =>
      defineRoute({
        tag,
        method,
        path: "/api/v1/groups/{id}/members/{user_id}",
        summary: method === "PUT" ? "Add a user to a group" : "Remove a user from a group",
        params: memberParams,
        access: needPermission("users:write"),
        answer: NO_BODY,
        handle: async (exchange) => {
          const principal = identification.require(exchange);
          const { id: groupId, user_id: userId } = exchange.params;
          if (method === "PUT") await groups.addMember(groupId, userId, principal.rights);
          else await groups.removeMember(groupId, userId, principal.rights);
          const action = method === "PUT" ? "group.member.add" : "group.member.remove";
          await record(exchange, principal, action, `group:${groupId}`, { user_id: userId });
          return undefined;
        },
      }),
    ),
  ];
}
