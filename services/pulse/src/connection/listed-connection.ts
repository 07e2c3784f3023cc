// Descriptions of open connections, for administration.
import type { Tenant } from "../topic/name.ts";
import { ownerOf, type Principal } from "../user/principal.ts";

/** The client of a connection. */
export interface ConnectedClient {
  /** `user:<name>` or `sub:<subject of a token>`. */
  user: string;
  tenant: Tenant;
  clientId?: string | undefined;
  /** Names, patterns or filters of topics. */
  subscriptions: IteratorObject<string>;
  subscriptionCount: number;
}

/** Transports of connections. */
export const TRANSPORTS = ["tcp", "tls", "websocket", "sse"] as const;

/** An open connection. */
export interface ListedConnection {
  /** Higher than that of all connections of the protocol that were opened before. */
  number: number;
  transport: (typeof TRANSPORTS)[number];
  remoteAddress: string;
  openedAtMs: number;
  /** Undefined until it is authenticated. */
  client: ConnectedClient | undefined;
}

/** The connections of a protocol after this number, in their order. */
export type ListConnections = (after: number) => Iterable<ListedConnection>;

/** The client of an authenticated principal. */
export function describeClient(
  principal: Pick<Principal, "name" | "tenant" | "token">,
  clientId: string | undefined,
  subscriptions: IteratorObject<string>,
  subscriptionCount: number,
): ConnectedClient {
  const user = ownerOf(principal);
  return { user, tenant: principal.tenant, clientId, subscriptions, subscriptionCount };
}
