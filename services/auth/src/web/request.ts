// Reads node's requests.
import type { IncomingMessage } from "node:http";
import type { HeaderReader, Peer } from "@platform/kernel/http";

/** The path of a request without its query. */
export function readPath({ url = "/" }: IncomingMessage): string {
  const query = url.indexOf("?");
  return query === -1 ? url : url.slice(0, query);
}

/** The header fields of a request, by lower-case names. */
export function readHeaders({ headers }: IncomingMessage): HeaderReader {
  return {
    get: (name) => headers[name]?.toString() ?? null,
    has: (name) => headers[name] !== undefined,
  };
}

/** The peer of a request's connection. */
export function readPeer({ socket }: IncomingMessage): Peer {
  return socket.remoteAddress === undefined
    ? { kind: "unknown" }
    : { kind: "tcp", address: socket.remoteAddress };
}
