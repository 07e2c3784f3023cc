// The open connections of all protocols.
import { z } from "zod";
import {
  cursorQuery,
  defineRoute,
  nextCursor,
  readPage,
  type ApiRoute,
} from "@platform/kernel/http";
import type { Caller } from "@platform/kernel/identity";
import {
  TRANSPORTS,
  type ListConnections,
  type ListedConnection,
} from "../connection/listed-connection.ts";
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
  cursor: cursorQuery,
});

/** Identifies a connection. */
const placeSchema = z.string().regex(new RegExp(`^(?:${PROTOCOLS.join("|")})-\\d{1,15}$`));

const connectionAnswer = z.object({
  id: z.string(),
  protocol: z.enum(PROTOCOLS),
  transport: z.enum(TRANSPORTS),
  address: z.string(),
  user: z.string().nullable(),
  tenant: z.string().optional().describe("In the list of all tenants."),
  client_id: z.string().nullable(),
  since: z.string(),
  subscriptions: z.array(z.string()),
  subscription_count: z.int(),
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
    answer: z.object({ connections: z.array(connectionAnswer), next_cursor: nextCursor }),
    handle: async ({ query: { protocol: only, limit, cursor }, caller }) => {
      const isVisible = createFilter(caller);
      const { items, next_cursor } = await readPage(
        { limit, cursor },
        {
          key: placeSchema,
          keyOf: ({ id }: z.infer<typeof connectionAnswer>) => id,
          read: async (count, after) =>
            walk(sources, only, after === undefined ? undefined : readPlace(after))
              .filter(({ listed }) => isVisible(listed))
              .take(count)
              .map(({ protocol, listed }) => describe(protocol, listed, isForAllTenants(caller)))
              .toArray(),
        },
      );
      return { connections: items, next_cursor };
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
  protocol: Protocol,
  { number, transport, remoteAddress, openedAtMs, client }: ListedConnection,
  withTenant: boolean,
): z.infer<typeof connectionAnswer> {
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

function readPlace(id: string): Place {
  const [name, number] = id.split("-");
  return { protocol: name as Protocol, number: Number(number) };
}
