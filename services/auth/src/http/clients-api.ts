// Operations of administrators on OAuth clients and signing keys.
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, pageQuery, readPage } from "@platform/kernel/http";
import type { ApiRoute } from "@platform/kernel/http";
import { z } from "zod";
import type { AuditLog } from "../audit/audit-log.ts";
import type { OAuth } from "../oauth/port.ts";
import { createAuditRecorder } from "./audit-recorder.ts";
import { client, clientsAnswer, keysAnswer } from "./answers.ts";
import type { Identification } from "./principal.ts";

const sortKey = z.string().max(512);
const clientId = z.string().min(1).max(255);

/** What these operations work with. */
export interface ClientsApiParts {
  identification: Identification;
  oauth: OAuth;
  audit: AuditLog;
}

/** The operations. */
export function listClientOperations(parts: ClientsApiParts): ApiRoute[] {
  const { identification, oauth } = parts;
  const record = createAuditRecorder(parts);
  const clients = "OAuth clients";
  const keys = "Signing keys";
  return [
    defineRoute({
      tag: clients,
      method: "GET",
      path: "/api/v1/auth/clients",
      summary: "Clients, by id, without their secrets",
      query: pageQuery,
      answer: clientsAnswer,
      handle: async (exchange) => {
        await identification.requirePermission(exchange, "clients:read");
        const page = await readPage(exchange.query, {
          key: sortKey,
          read: (limit, after = "") => oauth.listClients(after, limit),
          keyOf: (item) => String(item["client_id"]),
        });
        return { clients: page.items, next_cursor: page.next_cursor };
      },
    }),
    defineRoute({
      tag: clients,
      method: "POST",
      path: "/api/v1/auth/clients",
      summary: "Register a client (metadata of RFC 7591); the answer holds its secret",
      status: 201,
      body: z.record(z.string().max(128), z.unknown()),
      answer: client,
      handle: async (exchange) => {
        const principal = await identification.requirePermission(exchange, "clients:write");
        const client = await oauth.addClient(exchange.body);
        await record(exchange, principal, "client.create", `client:${String(client["client_id"])}`);
        return client;
      },
    }),
    defineRoute({
      tag: clients,
      method: "DELETE",
      path: "/api/v1/auth/clients/{id}",
      summary: "Remove a client with all of its tokens",
      params: z.object({ id: clientId }),
      handle: async (exchange) => {
        const principal = await identification.requirePermission(exchange, "clients:write");
        const { id } = exchange.params;
        if (!(await oauth.deleteClient(id))) {
          throw new PlatformError("not_found", "There is no such client.");
        }
        await record(exchange, principal, "client.delete", `client:${id}`);
        return undefined;
      },
    }),
    defineRoute({
      tag: clients,
      method: "POST",
      path: "/api/v1/auth/clients/initial-access-tokens",
      summary: "A token that lets its holder register clients for a time",
      status: 201,
      body: z.strictObject({ expires_in: z.int().min(60).max(31_536_000).default(3600) }),
      answer: z.object({ token: z.string(), expires_in: z.int() }),
      handle: async (exchange) => {
        const principal = await identification.requirePermission(exchange, "clients:write");
        const { expires_in } = exchange.body;
        const token = await oauth.createInitialAccessToken(expires_in);
        await record(exchange, principal, "client.initial_access_token", undefined);
        return { token, expires_in };
      },
    }),
    defineRoute({
      tag: keys,
      method: "GET",
      path: "/api/v1/auth/keys",
      summary: "Signing keys, the newest first",
      answer: keysAnswer,
      handle: async (exchange) => {
        await identification.requirePermission(exchange, "keys:write");
        return { keys: await oauth.listKeys() };
      },
    }),
    defineRoute({
      tag: keys,
      method: "POST",
      path: "/api/v1/auth/keys/rotate",
      summary: "Rotate the signing keys: as scheduled, or at once, dropping the old one everywhere",
      body: z.strictObject({
        mode: z.enum(["scheduled", "immediate"]).default("scheduled"),
        revoke_kid: z.string().min(1).max(128).optional(),
      }),
      answer: z.object({ kid: z.string() }),
      handle: async (exchange) => {
        const principal = await identification.requirePermission(exchange, "keys:write");
        const { mode, revoke_kid: revokeKid } = exchange.body;
        const rotated = await oauth.rotateKeys({ mode, revokeKid });
        await record(exchange, principal, "key.rotate", `key:${rotated.kid}`, { mode });
        return rotated;
      },
    }),
  ];
}
