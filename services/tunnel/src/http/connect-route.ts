// The connection of clients in the API's documentation; `relay/connect.ts` handles it.
import { defineUpgradeRoute, type ApiRoute } from "@platform/kernel/http";
import { SUBPROTOCOL } from "../frame/format.ts";

export function createConnectRoute(): ApiRoute {
  return defineUpgradeRoute({
    requires: "caller",
    path: "/ws/connect",
    tag: "Tunnels",
    summary: "Connect a client: a WebSocket that carries all of its tunnels",
    description: `The subprotocol is \`${SUBPROTOCOL}\`; docs/internals/tunnel-wire.md describes its frames.`,
    problems: {
      400: "The handshake is not valid, or the subprotocol is another one",
      403: "The token may not open tunnels, or a web page sent the request",
      429: "Too many failed attempts, or too many clients of the subject",
      503: "The relay has too many clients, or restarts",
    },
  });
}
