// Routes of sessions.
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, pageQuery, readPage, type ApiRoute, NO_BODY } from "@platform/kernel/http";
import { z } from "zod";
import type { AuditLog } from "../audit/audit-log.ts";
import type { Sessions } from "../session/sessions.ts";
import type { Credentials } from "../sign-in/credentials.ts";
import type { Users } from "../user/users.ts";
import { createAuditRecorder } from "./audit-recorder.ts";
import type { Identification } from "./principal.ts";
import { sessionsAnswer } from "./responses.ts";

const id = z.string().min(1).max(64);

/** Options of these routes. */
export interface SessionRouteOptions {
  identification: Identification;
  sessions: Sessions;
  credentials: Credentials;
  users: Users;
  audit: AuditLog;
}

export function createSessionRoutes(options: SessionRouteOptions): ApiRoute[] {
  const { identification, sessions, credentials, users } = options;
  const record = createAuditRecorder(options);
  const tag = "Sessions";
  return [
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/sessions",
      summary: "Active sessions of the caller, or with sessions:read of any user, or of all users",
      query: pageQuery.extend({
        user_id: id.optional(),
        all: z
          .literal("true")
          .optional()
          .describe("Sessions of all users, newest first, in pages; others are not paged"),
      }),
      answer: sessionsAnswer,
      requires: "caller",
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        if (exchange.query.all !== undefined) {
          identification.requirePermission(principal, "sessions:read");
          const page = await readPage(exchange.query, {
            key: id,
            read: (limit, after) => sessions.listAll(limit, after),
            keyOf: (session) => session.id,
          });
          return { sessions: page.items, next_cursor: page.next_cursor };
        }
        const userId = exchange.query.user_id;
        if (userId !== undefined && userId !== principal.account?.id) {
          identification.requirePermission(principal, "sessions:read");
          return { sessions: await sessions.list(userId, undefined) };
        }
        const { account, session } = identification.requireUser(exchange);
        return { sessions: await sessions.list(account.id, session?.id) };
      },
    }),
    defineRoute({
      tag,
      method: "DELETE",
      path: "/api/v1/sessions/{id}",
      summary: "End a session of the caller, or with sessions:write of any user",
      params: z.object({ id }),
      requires: "caller",
      answer: NO_BODY,
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const sid = exchange.params.id;
        const found = await sessions.find(sid);
        if (found === undefined || found.userId !== principal.account?.id) {
          if (!identification.may(principal, "sessions:write") || found === undefined) {
            throw new PlatformError("not_found", "There is no such session.");
          }
          await users.requireManageable(found.userId, principal.rights);
        } else {
          identification.requireUser(exchange);
        }
        await credentials.endSession(sid);
        await record(exchange, principal, "session.end", `session:${sid}`);
        return undefined;
      },
    }),
    defineRoute({
      tag,
      method: "POST",
      path: "/api/v1/sessions/invalidate",
      summary: "End all sessions, grants and tokens of a user",
      body: z.strictObject({ user_id: id.optional() }),
      answer: z.object({ invalidated: z.int() }),
      requires: "caller",
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const userId = exchange.body.user_id ?? principal.account?.id;
        if (userId === undefined || userId !== principal.account?.id) {
          identification.requirePermission(principal, "sessions:write");
          if (userId === undefined || (await users.find(userId)) === undefined) {
            throw new PlatformError("not_found", "There is no such user.");
          }
          await users.requireManageable(userId, principal.rights);
        } else {
          identification.requireUser(exchange);
        }
        const invalidated = await credentials.invalidate(userId);
        await record(exchange, principal, "session.invalidate", `user:${userId}`, { invalidated });
        return { invalidated };
      },
    }),
  ];
}
