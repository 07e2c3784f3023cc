// Operations on share links.
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, NO_BODY, type ApiRoute } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import { z } from "zod";
import type { ShareRow, TunnelRow } from "../database/schema.ts";
import type { TunnelStore } from "../name/tunnel-store.ts";
import { readDuration } from "../share/duration.ts";
import type { ShareLinks } from "../share/share-links.ts";
import { expectSameOrigin } from "./request-routes.ts";
import { findTunnel } from "./tunnel-routes.ts";

/** Options of {@link createShareRoutes}. */
export interface ShareRoutesOptions {
  store: TunnelStore;
  links: ShareLinks;
  clock: Clock;
  formatUrl: (tunnel: TunnelRow) => string;
}

const EXPIRES_MAX_MS = 30 * 86_400_000;

const shareSchema = z.object({
  id: z.string(),
  one_time: z.boolean(),
  status: z.enum(["active", "used", "revoked"]),
  created_at: z.string(),
  expires_at: z.string(),
  used_at: z.string().nullable(),
});

const createSchema = z.strictObject({
  expires_in: z
    .string()
    .max(16)
    .refine((text) => {
      const ms = readDuration(text);
      return ms !== undefined && ms <= EXPIRES_MAX_MS;
    }, "a duration such as 15m, 1h or 7d, at most 30d")
    .default("1h"),
  one_time: z.boolean().default(false),
});

const idParams = z.object({ id: z.string().max(64) });

/** Creates the operations on share links. */
export function createShareRoutes({
  store,
  links,
  clock,
  formatUrl,
}: ShareRoutesOptions): ApiRoute[] {
  const own = { tag: "Share links" } as const;
  return [
    defineRoute({
      requires: "caller",
      ...own,
      method: "POST",
      path: "/api/v1/tunnels/{id}/share",
      summary: "Create a link that opens the tunnel without other credentials",
      description: "The URL is shown only once.",
      params: idParams,
      body: createSchema.default({ expires_in: "1h", one_time: false }),
      answer: z.object({
        id: z.string(),
        url: z.string(),
        expires_at: z.string(),
        one_time: z.boolean(),
      }),
      problems: { 404: "No such tunnel", 409: "A TCP tunnel, or too many links" },
      handle: async ({ params, body, caller, headers }) => {
        expectSameOrigin(headers);
        const tunnel = findTunnel(store, params.id, caller);
        if (tunnel.kind === "tcp") {
          throw new PlatformError("conflict", "TCP tunnels have no share links.");
        }
        const { share, token } = await links.create(tunnel.id, {
          expiresInMs: readDuration(body.expires_in) ?? 0,
          isOneTime: body.one_time,
        });
        return {
          id: share.id,
          url: `${formatUrl(tunnel)}/?token=${token}`,
          expires_at: formatTime(share.expires_at),
          one_time: body.one_time,
        };
      },
    }),
    defineRoute({
      requires: "caller",
      ...own,
      method: "GET",
      path: "/api/v1/tunnels/{id}/shares",
      summary: "List the links that have not expired",
      params: idParams,
      answer: z.object({ shares: z.array(shareSchema) }),
      problems: { 404: "No such tunnel" },
      handle: ({ params, caller }) => {
        const tunnel = findTunnel(store, params.id, caller);
        return { shares: links.list(tunnel.id).map(show) };
      },
    }),
    defineRoute({
      requires: "caller",
      ...own,
      method: "DELETE",
      path: "/api/v1/tunnels/{id}/shares/{shareID}",
      summary: "Revoke a link, also for browsers that have opened it",
      params: z.object({ id: z.string().max(64), shareID: z.string().max(64) }),
      answer: NO_BODY,
      problems: { 404: "No such tunnel or link" },
      handle: async ({ params, caller, headers }) => {
        expectSameOrigin(headers);
        const tunnel = findTunnel(store, params.id, caller);
        const share = await links.revoke(tunnel.id, params.shareID);
        if (share === undefined || share.expires_at <= clock.now()) {
          throw new PlatformError("not_found", "There is no such share link.");
        }
      },
    }),
  ];
}

function show(share: Readonly<ShareRow>): z.input<typeof shareSchema> {
  return {
    id: share.id,
    one_time: share.one_time === 1,
    status: share.revoked_at !== null ? "revoked" : share.used_at !== null ? "used" : "active",
    created_at: formatTime(share.created_at),
    expires_at: formatTime(share.expires_at),
    used_at: share.used_at === null ? null : formatTime(share.used_at),
  };
}

function formatTime(ms: number): string {
  return new Date(ms).toISOString();
}
