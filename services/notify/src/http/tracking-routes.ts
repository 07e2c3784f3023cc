// Links and images of tracked messages: open to all holders.
import { PlatformError } from "@platform/kernel/errors";
import {
  bytes,
  defineRoute,
  type ApiRoute,
  type Peer,
  type RateLimit,
  NO_BODY,
} from "@platform/kernel/http";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { TrackedDelivery, TrackedType, Tracking } from "../tracking/tracking.ts";

/** Options of the routes. */
export interface TrackingRoutesOptions {
  tracking: Tracking;
  /** Limit of invalid links per peer. */
  invalidRate: RateLimit;
  clock: Clock;
  log: Logger;
}

/** A transparent GIF of one pixel. */
const PIXEL = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");

interface Visit {
  params: Readonly<Record<string, string>>;
  method: string;
  headers: Headers;
  peer: Peer;
}

export function createTrackingRoutes(options: TrackingRoutesOptions): ApiRoute[] {
  const operation = {
    method: "GET",
    tag: "Tracking",
    access: "public",
    problems: { 404: "The link is not valid", 429: "Too many invalid links" },
  } as const;
  return [
    defineRoute({
      ...operation,
      path: "/open/{token}",
      summary: "Image of a tracked message",
      answer: bytes("image/gif"),
      handle: async (visit) => {
        await record(options, "opened", visit);
        return new Response(PIXEL, {
          headers: { "Content-Type": "image/gif", "Cross-Origin-Resource-Policy": "cross-origin" },
        });
      },
    }),
    defineRoute({
      ...operation,
      path: "/click/{token}",
      summary: "Link of a tracked message: redirects to the signed target",
      status: 302,
      answer: NO_BODY,
      handle: async (visit) => {
        const { target = "" } = await record(options, "clicked", visit);
        return new Response(null, { status: 302, headers: { Location: target } });
      },
    }),
  ];
}

async function record(
  { tracking, invalidRate, clock, log }: TrackingRoutesOptions,
  type: TrackedType,
  { params, method, headers, peer }: Visit,
): Promise<TrackedDelivery> {
  const delivery = tracking.parse(type, params["token"]!);
  if (delivery === undefined) {
    invalidRate.take(peer.kind === "tcp" ? peer.address : "", 1);
    throw new PlatformError("not_found", "The link is not valid: it may be incomplete.");
  }
  // A reader gets to the target even if the event cannot be stored.
  await tracking
    .record(type, delivery, { method, headers, nowMs: clock.now() })
    .catch((error: unknown) => log.error("an event could not be stored", { error, type }));
  return delivery;
}
