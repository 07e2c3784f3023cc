// Routes of administrators for OAuth clients and signing keys.
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, pageQuery, readPage, type ApiRoute, NO_BODY } from "@platform/kernel/http";
import { z } from "zod";
import type { AuditLog } from "../audit/audit-log.ts";
import type { KeyRing } from "../key/key-ring.ts";
import { LOGO_BYTES_MAX } from "../oauth/client/client-logos.ts";
import {
  INITIAL_ACCESS_SECONDS_MAX,
  SECRET_OVERLAP_SECONDS_MAX,
} from "../oauth/client/client-registry.ts";
import type { OAuth } from "../oauth/oauth.ts";
import { createAuditRecorder } from "./audit-recorder.ts";
import { needPermission, type Identification } from "./principal.ts";
import { client, clientsAnswer, keysAnswer, logoAnswer } from "./responses.ts";
import { CHANGED, requireVersion, showVersion } from "./versions.ts";

const sortKey = z.string().max(512);
const clientId = z.string().min(1).max(255);
const metadata = z.record(z.string().max(128), z.unknown());
const LOGO_BODY_BYTES_MAX = 98_304;
const FORBIDDEN = { 403: "You lack a permission that the client has or would get" };

/** Options of these routes. */
export interface ClientRouteOptions {
  identification: Identification;
  oauth: OAuth;
  keys: KeyRing;
  audit: AuditLog;
}

export function createClientRoutes(options: ClientRouteOptions): ApiRoute[] {
  const { identification, oauth, keys } = options;
  const record = createAuditRecorder(options);
  const clients = "OAuth clients";
  const keyTag = "Signing keys";
  return [
    defineRoute({
      tag: clients,
      method: "GET",
      path: "/api/v1/auth/clients",
      summary: "OAuth clients by id, without secrets",
      query: pageQuery,
      answer: clientsAnswer,
      access: needPermission("clients:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        const page = await readPage(exchange.query, {
          key: sortKey,
          read: (limit, after = "") => oauth.clients.list(after, limit),
          keyOf: (item) => String(item["client_id"]),
        });
        return { clients: page.items, next_cursor: page.next_cursor };
      },
    }),
    defineRoute({
      tag: clients,
      method: "POST",
      path: "/api/v1/auth/clients",
      summary: "Register a client (RFC 7591 metadata); the response contains its secret",
      status: 201,
      body: metadata,
      problems: FORBIDDEN,
      answer: client,
      access: needPermission("clients:write"),
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const client = await oauth.clients.add(exchange.body, principal.rights);
        await record(exchange, principal, "client.create", `client:${String(client["client_id"])}`);
        return client;
      },
    }),
    defineRoute({
      tag: clients,
      method: "GET",
      path: "/api/v1/auth/clients/{id}",
      summary: "An OAuth client without its secret",
      description: "The answer has an ETag for If-Match.",
      params: z.object({ id: clientId }),
      answer: client,
      access: needPermission("clients:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        const found = await oauth.clients.find(exchange.params.id);
        if (found === undefined) throw noSuchClient();
        showVersion(exchange, found);
        return found;
      },
    }),
    defineRoute({
      tag: clients,
      method: "PATCH",
      path: "/api/v1/auth/clients/{id}",
      summary: "Change the metadata of a client; null removes a member",
      params: z.object({ id: clientId }),
      body: metadata,
      problems: {
        ...FORBIDDEN,
        ...CHANGED,
        409: "The client registered itself and can be neither first-party nor have the platform's audience",
      },
      answer: client,
      access: needPermission("clients:write"),
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const { id } = exchange.params;
        await requireVersion(exchange, async () => (await oauth.clients.find(id)) ?? null);
        const changed = await oauth.clients.change(id, exchange.body, principal.rights);
        const fields = Object.keys(exchange.body);
        await record(exchange, principal, "client.change", `client:${id}`, { fields });
        return changed;
      },
    }),
    defineRoute({
      tag: clients,
      method: "POST",
      path: "/api/v1/auth/clients/{id}/secret",
      summary: "Replace the secret of a client",
      description:
        "Without an overlap the previous secret becomes invalid immediately. Assertions that are signed with the previous secret (`client_secret_jwt`) always do.",
      params: z.object({ id: clientId }),
      query: z.object({
        overlap_seconds: z.coerce
          .number()
          .int()
          .min(0)
          .max(SECRET_OVERLAP_SECONDS_MAX)
          .default(0)
          .describe("Time for which the previous secret is accepted."),
      }),
      problems: { ...FORBIDDEN, 409: "The client has no secret" },
      answer: client,
      access: needPermission("clients:write"),
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const { id } = exchange.params;
        const { overlap_seconds: seconds } = exchange.query;
        const changed = await oauth.clients.rotateSecret(id, principal.rights, seconds * 1_000);
        const detail = seconds === 0 ? undefined : { overlap_seconds: seconds };
        await record(exchange, principal, "client.secret", `client:${id}`, detail);
        return changed;
      },
    }),
    defineRoute({
      tag: clients,
      method: "GET",
      path: "/api/v1/auth/clients/{id}/logo",
      summary: "The logo of a client, in base64",
      params: z.object({ id: clientId }),
      answer: logoAnswer,
      access: needPermission("clients:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        const logo = await oauth.logos.readOf(exchange.params.id);
        if (logo === undefined) throw noLogo();
        return { type: logo.type, image: Buffer.from(logo.content).toString("base64") };
      },
    }),
    defineRoute({
      tag: clients,
      method: "PUT",
      path: "/api/v1/auth/clients/{id}/logo",
      summary:
        "Set the logo of a client: a PNG or JPEG of at most 1024 × 1024 pixels. Pages never load `logo_uri`",
      params: z.object({ id: clientId }),
      body: z.object({ image: z.base64().min(1).max(base64Length(LOGO_BYTES_MAX)) }),
      bodyBytesMax: LOGO_BODY_BYTES_MAX,
      problems: FORBIDDEN,
      access: needPermission("clients:write"),
      answer: NO_BODY,
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const { id } = exchange.params;
        if ((await oauth.clients.find(id)) === undefined) throw noSuchClient();
        await oauth.clients.requireManageable(id, principal.rights);
        await oauth.logos.set(id, Buffer.from(exchange.body.image, "base64"));
        await record(exchange, principal, "client.logo", `client:${id}`);
        return undefined;
      },
    }),
    defineRoute({
      tag: clients,
      method: "DELETE",
      path: "/api/v1/auth/clients/{id}/logo",
      summary: "Remove the logo of a client",
      params: z.object({ id: clientId }),
      problems: FORBIDDEN,
      access: needPermission("clients:write"),
      answer: NO_BODY,
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const { id } = exchange.params;
        await oauth.clients.requireManageable(id, principal.rights);
        if (!(await oauth.logos.remove(id))) throw noLogo();
        await record(exchange, principal, "client.logo", `client:${id}`, { removed: true });
        return undefined;
      },
    }),
    defineRoute({
      tag: clients,
      method: "DELETE",
      path: "/api/v1/auth/clients/{id}",
      summary: "Delete a client with all of its tokens",
      params: z.object({ id: clientId }),
      problems: FORBIDDEN,
      access: needPermission("clients:write"),
      answer: NO_BODY,
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const { id } = exchange.params;
        if (!(await oauth.clients.delete(id, principal.rights))) throw noSuchClient();
        await record(exchange, principal, "client.delete", `client:${id}`);
        return undefined;
      },
    }),
    defineRoute({
      tag: clients,
      method: "POST",
      path: "/api/v1/auth/clients/initial-access-tokens",
      summary:
        "Create an initial access token for client registration, limited to your permissions",
      status: 201,
      body: z.strictObject({
        expires_in: z.int().min(60).max(INITIAL_ACCESS_SECONDS_MAX).default(3600),
      }),
      answer: z.object({ token: z.string(), expires_in: z.int() }),
      access: needPermission("clients:write"),
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const { expires_in } = exchange.body;
        const token = await oauth.clients.createInitialAccessToken(expires_in, principal.rights);
        await record(exchange, principal, "client.initial_access_token", undefined);
        return { token, expires_in };
      },
    }),
    defineRoute({
      tag: keyTag,
      method: "GET",
      path: "/api/v1/auth/keys",
      summary: "Signing keys, newest first",
      answer: keysAnswer,
      access: needPermission("keys:write"),
      handle: async (exchange) => {
        identification.require(exchange);
        return { keys: await keys.list() };
      },
    }),
    defineRoute({
      tag: keyTag,
      method: "POST",
      path: "/api/v1/auth/keys/rotate",
      summary: "Rotate the signing keys: scheduled, or immediately with revocation of the old key",
      body: z.strictObject({
        mode: z.enum(["scheduled", "immediate"]).default("scheduled"),
        revoke_kid: z.string().min(1).max(128).optional(),
      }),
      answer: z.object({ kid: z.string() }),
      access: needPermission("keys:write"),
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const { mode, revoke_kid: revokeKid } = exchange.body;
        const rotated = await oauth.rotateKeys({ mode, revokeKid });
        await record(exchange, principal, "key.rotate", `key:${rotated.kid}`, { mode });
        return rotated;
      },
    }),
  ];
}

function noLogo(): PlatformError {
  return new PlatformError("not_found", "The client has no logo.");
}

function noSuchClient(): PlatformError {
  return new PlatformError("not_found", "There is no such client.");
}

function base64Length(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}
