// The WebSockets of messaging in the API's documentation; `web-sockets.ts` serves them.
import { defineUpgradeRoute, type ApiRoute } from "@platform/kernel/http";
import { z } from "zod";

const token = z.string().optional().describe("Token of browsers, which cannot set headers.");

export function createSocketRoutes(): ApiRoute[] {
  return [
    defineUpgradeRoute({
      path: "/ws/subscribe/{topic}",
      summary: "Subscribe to a topic or a pattern by a WebSocket",
      description:
        'Each text frame is a message as JSON. With ack=manual clients answer {"ack": id} or {"nack": id}. Closed with 1008 when the token is revoked or the right is withdrawn, and with 1001 when the client may connect again.',
      tag: "Subscribe",
      access: "public",
      params: z.object({ topic: z.string() }),
      query: z.object({
        group: z.string().optional().describe("Joins a shared subscription."),
        from: z.string().optional().describe("earliest, latest (default) or an offset."),
        last_event_id: z.string().optional().describe("Position to continue from."),
        ack: z.enum(["auto", "manual"]).optional(),
        prefetch: z.string().optional().describe("Unacknowledged messages, 1 to 10000."),
        ack_wait_ms: z.string().optional().describe("Time to acknowledge, 100 to 43200000 ms."),
        access_token: token,
      }),
      problems: {
        403: "No right for the topic",
        429: "The user has too many subscribers",
        503: "The limit of subscribers is reached",
      },
    }),
    defineUpgradeRoute({
      path: "/api/v1/stats/ws",
      summary: "Statistics every second by a WebSocket",
      description: "Each text frame is the answer of GET /api/v1/stats.",
      tag: "Read",
      access: "public",
      query: z.object({ access_token: token }),
    }),
  ];
}
