// Routes of administrators for users, groups and invitations.
import { PlatformError } from "@platform/kernel/errors";
import {
  defineRoute,
  pageQuery,
  readPage,
  type ApiRoute,
  type Exchange,
  NO_BODY,
} from "@platform/kernel/http";
import { z } from "zod";
import type { AuditLog } from "../audit/audit-log.ts";
import { formatTime } from "../session/sessions.ts";
import type { Credentials } from "../sign-in/credentials.ts";
import type { Registrations } from "../sign-in/registrations.ts";
import type { SecurityNotices } from "../sign-in/security-notices.ts";
import type { Groups } from "../user/groups.ts";
import { foldUsername } from "../user/username.ts";
import { createAuditRecorder } from "./audit-recorder.ts";
import { createGroupRoutes } from "./group-routes.ts";
import { needPermission, type Principal } from "./principal.ts";
import { invitationsAnswer, sentAnswer, userAnswer, usersAnswer } from "./responses.ts";
import { showUser } from "./signed-in.ts";
import { createUserAccessRoutes, type UserAccessRouteOptions } from "./user-access-routes.ts";

const id = z.string().min(1).max(64);
const text = (max: number) => z.string().min(1).max(max);
const sortKey = z.string().max(512);
const part = z.string().trim().min(1).max(256);

/** Options of these routes. */
export interface UserRouteOptions extends UserAccessRouteOptions {
  groups: Groups;
  credentials: Credentials;
  registrations: Registrations;
  notices: SecurityNotices;
  audit: AuditLog;
  publicUrl: string;
}

export function createUserRoutes(options: UserRouteOptions): ApiRoute[] {
  return [
    ...createUserRecordRoutes(options),
    ...createUserAccessRoutes(options),
    ...createGroupRoutes(options),
  ];
}

function createUserRecordRoutes(options: UserRouteOptions): ApiRoute[] {
  const { identification, users, credentials, registrations, factors, notices, publicUrl } =
    options;
  const tag = "Users";
  const record = createAuditRecorder(options);
  const params = z.object({ id });
  // Administrators changing their own credentials need what every user needs.
  const requireFreshForSelf = (
    exchange: Exchange<unknown, unknown, unknown>,
    principal: Principal,
    userId: string,
  ): void => {
    if (principal.account?.id === userId) identification.requireFreshUser(exchange);
  };
  return [
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/users",
      summary: "Users by name",
      query: pageQuery.extend({
        q: part.optional().describe("Part of the name, address or display name"),
        search: part.optional().describe("The same as q"),
        state: z.enum(["active", "disabled"]).optional(),
        role: z
          .string()
          .min(1)
          .max(64)
          .optional()
          .describe("A role of the user, or of one of their groups; not an inherited one"),
      }),
      answer: usersAnswer,
      access: needPermission("users:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        const { q, search = q, state, role } = exchange.query;
        const isDisabled = state === undefined ? undefined : state === "disabled";
        const page = await readPage(exchange.query, {
          key: sortKey,
          read: (limit, after) => users.list(limit, after, { search, isDisabled, role }),
          keyOf: (user) => foldUsername(user.username),
        });
        return { users: page.items.map(showUser), next_cursor: page.next_cursor };
      },
    }),
    defineRoute({
      tag,
      method: "POST",
      path: "/api/v1/users",
      summary: "Create a user",
      status: 201,
      body: z.strictObject({
        username: text(256),
        password: text(1024).optional(),
        email: text(254).optional(),
        name: text(256).optional(),
      }),
      problems: { 409: "The name is taken" },
      answer: userAnswer,
      access: needPermission("users:write"),
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const account = await registrations.create(exchange.body);
        await record(exchange, principal, "user.create", `user:${account.id}`);
        return { user: showUser(account) };
      },
    }),
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/users/{id}",
      summary: "A user",
      params,
      answer: userAnswer,
      access: needPermission("users:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        const account = await users.find(exchange.params.id);
        if (account === undefined) throw new PlatformError("not_found", "There is no such user.");
        return { user: showUser(account) };
      },
    }),
    defineRoute({
      tag,
      method: "PATCH",
      path: "/api/v1/users/{id}",
      summary: "Change a user; disabling one ends all sessions and tokens immediately",
      params,
      body: z.strictObject({
        email: text(254).nullable().optional(),
        name: text(256).nullable().optional(),
        tenant: text(128).nullable().optional(),
        disabled: z.boolean().optional(),
      }),
      problems: { 409: "No administrator would be left" },
      answer: userAnswer,
      access: needPermission("users:write"),
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const userId = exchange.params.id;
        const { body } = exchange;
        if (body.email !== undefined) requireFreshForSelf(exchange, principal, userId);
        await users.requireManageable(userId, principal.rights);
        const before = await users.find(userId);
        if (before === undefined) throw new PlatformError("not_found", "There is no such user.");
        const account = await credentials.change(before, body);
        await record(exchange, principal, "user.change", `user:${userId}`, {
          fields: Object.keys(body),
          ...(body.disabled === undefined ? {} : { disabled: body.disabled }),
        });
        return { user: showUser(account) };
      },
    }),
    defineRoute({
      tag,
      method: "DELETE",
      path: "/api/v1/users/{id}",
      summary: "Delete a user and everything that belongs to them",
      params,
      problems: { 409: "No administrator would be left" },
      access: needPermission("users:write"),
      answer: NO_BODY,
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const userId = exchange.params.id;
        await users.requireManageable(userId, principal.rights);
        await credentials.delete(userId);
        await record(exchange, principal, "user.delete", `user:${userId}`);
        return undefined;
      },
    }),
    defineRoute({
      tag,
      method: "POST",
      path: "/api/v1/users/{id}/recovery",
      summary: "Send a recovery link to a user; the response does not contain it",
      status: 202,
      params,
      problems: { 409: "The user has no address, or no mail service is configured" },
      answer: sentAnswer,
      access: needPermission("users:write"),
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const userId = exchange.params.id;
        await users.requireManageable(userId, principal.rights);
        const account = await users.find(userId);
        if (account === undefined) throw new PlatformError("not_found", "There is no such user.");
        const sentTo = await credentials.sendRecoveryTo(account);
        await record(exchange, principal, "user.recovery", `user:${userId}`);
        return { sent_to: sentTo };
      },
    }),
    defineRoute({
      tag,
      method: "DELETE",
      path: "/api/v1/users/{id}/factors",
      summary: "Remove the second factors and backup codes of a user; their sessions end",
      params,
      access: needPermission("users:write"),
      answer: NO_BODY,
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const userId = exchange.params.id;
        requireFreshForSelf(exchange, principal, userId);
        if (principal.account?.id === userId) await identification.requireSecondFactor(principal);
        await users.requireManageable(userId, principal.rights);
        const account = await users.find(userId);
        if (account === undefined) throw new PlatformError("not_found", "There is no such user.");
        const removed = await factors.removeAll(userId);
        await credentials.invalidate(userId);
        await record(exchange, principal, "mfa.reset", `user:${userId}`, { removed });
        notices.tell(account, "mfa.remove");
        return undefined;
      },
    }),
    defineRoute({
      tag,
      method: "POST",
      path: "/api/v1/invitations",
      summary: "Issue an invitation for one registration within a week",
      status: 201,
      answer: z.object({ id: z.string(), token: z.string(), url: z.string() }),
      access: needPermission("users:write"),
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const { id: invitation, token } = await registrations.issueInvitation();
        await record(exchange, principal, "invitation.issue", `invitation:${invitation}`);
        return { id: invitation, token, url: `${publicUrl}/sign-up?invitation=${token}` };
      },
    }),
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/invitations",
      summary: "Unused invitations, without their tokens",
      query: pageQuery,
      answer: invitationsAnswer,
      access: needPermission("users:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        const page = await readPage(exchange.query, {
          key: sortKey,
          read: (limit, after) => registrations.listInvitations(limit, after),
          keyOf: (item) => item.id,
        });
        const invitations = page.items.map(({ createdAt, expiresAt, ...item }) => ({
          ...item,
          created_at: formatTime(createdAt),
          expires_at: formatTime(expiresAt),
        }));
        return { invitations, next_cursor: page.next_cursor };
      },
    }),
    defineRoute({
      tag,
      method: "DELETE",
      path: "/api/v1/invitations/{id}",
      summary: "Revoke an invitation",
      params,
      access: needPermission("users:write"),
      answer: NO_BODY,
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const invitation = exchange.params.id;
        if (!(await registrations.revokeInvitation(invitation))) {
          throw new PlatformError("not_found", "There is no such invitation.");
        }
        await record(exchange, principal, "invitation.revoke", `invitation:${invitation}`);
        return undefined;
      },
    }),
  ];
}
