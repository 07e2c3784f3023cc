// The open connections of all protocols.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import type { ListConnections, ListedConnection } from "../connection/listed-connection.ts";
import { isForAllTenants, requireOperator, tenantOf } from "./admission.ts";

const PROTOCOLS = ["http", "kafka", "mqtt", "stomp"] as const;
type Protocol = (typeof PROTOCOLS)[number];

/** The connections of each protocol. */
export type ConnectionSources = Readonly<Record<Protocol, ListConnections>>;

/** Subscriptions that are shown of a connection. */
const SUBSCRIPTIONS_MAX = 20;

const listQuery = z.object({
  protocol: z.enum(PROTOCOLS).optional().describe("Default: all."),
  limit: z
    .string()
    .regex(/^\d{1,4}$/)
    .transform(Number)
    .refine((limit) => limit >= 1 && limit <= 1_000, "a whole number from 1 to 1000")
    .default(100),
  cursor: z.string().max(64).optional().describe("`next_cursor` of the previous page."),
});

/** The protocol and the number of the last connection of a page. */
interface Place {
  protocol: Protocol;
  number: number;
}

/** The route that lists the connections. */
export function createConnectionsRoute(sources: ConnectionSources): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/connections",
    summary:
      "The open connections of clients: by protocol, then in the order in which they were opened",
    description:
      "Of the operator's tenant, one tenant with `tenant`, or all with `*`. HTTP connections are those of SSE and WebSocket " +
      "subscribers. `subscriptions` are the first 20 of `subscription_count`. `user` and `client_id` are null until the client " +
      "is authenticated; such connections are shown to the operator without a tenant.",
    tag: "Operation",
    access: requireOperator,
    query: listQuery,
    handle: ({ query: { protocol: only, limit, cursor }, caller }) => {
      const isVisible = createFilter(caller);
      const start = cursor === undefined ? undefined : readCursor(cursor);
      const connections: object[] = [];
      let last: Place | undefined;
      for (const { protocol, listed } of walk(sources, only, start)) {
        if (!isVisible(listed)) continue;
        if (connections.length === limit) return { connections, next_cursor: formatCursor(last!) };
        last = { protocol, number: listed.number };
        connections.push(describe(last, listed, isForAllTenants(caller)));
      }
      return { connections, next_cursor: null };
    },
  });
}

function createFilter(caller: Caller): (connection: ListedConnection) => boolean {
  if (isForAllTenants(caller)) return () => true;
  const tenant = tenantOf(caller);
  return ({ client }) => (client?.tenant ?? "") === tenant;
}

function* walk(
  sources: ConnectionSources,
  only: Protocol | undefined,
  start: Place | undefined,
): Generator<{ protocol: Protocol; listed: ListedConnection }> {
  for (const protocol of PROTOCOLS) {
    if (only !== undefined && protocol !== only) continue;
    if (start !== undefined && protocol < start.protocol) continue;
    const after = protocol === start?.protocol ? start.number : 0;
    for (const listed of sources[protocol](after)) yield { protocol, listed };
  }
}

function describe(
  { protocol, number }: Place,
  { transport, remoteAddress, openedAtMs, client }: ListedConnection,
  withTenant: boolean,
) {
  return {
    id: `${protocol}-${number}`,
    protocol,
    transport,
    address: remoteAddress,
    user: client?.user ?? null,
    ...(withTenant ? { tenant: client?.tenant ?? "" } : {}),
    client_id: client?.clientId ?? null,
    since: new Date(openedAtMs).toISOString(),
    subscriptions: client?.subscriptions.take(SUBSCRIPTIONS_MAX).toArray() ?? [],
    subscription_count: client?.subscriptionCount ?? 0,
  };
}

function formatCursor({ protocol, number }: Place): string {
  return `${protocol}-${number}`;
}

function readCursor(cursor: string): Place {
  const [, name, number] = /^([a-z]+)-(\d{1,15})$/.exec(cursor) ?? [];
  const protocol = PROTOCOLS.find((known) => known === name);
  if (protocol !== undefined) return { protocol, number: Number(number) };
  throw new PlatformError("validation_failed", "cursor is not valid.");
}
