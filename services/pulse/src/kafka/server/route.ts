// What a request handler is given, and the table of all handlers.
import type { WireMessage } from "../protocol/message.ts";
import type { Session } from "./session.ts";

/** One request under way. */
export interface RequestContext {
  readonly session: Session;
  readonly version: number;
  /** The client's own name for itself; "" if it gave none. */
  readonly clientId: string;
  /** Fires when the connection is gone. */
  readonly signal: AbortSignal;
  /**
   * Resolves when every earlier request of the connection has been answered and the client has read most of those answers,
   * or when the connection is gone.
   */
  turn(): Promise<void>;
  /**
   * Waits for room for an answer of up to `bytes`, read in pieces of up to `pieceBytes`; resolves with the bytes that it may
   * have, fewer while clients have much to read. 0 if there was no room in time, or the connection is gone. The answer gives
   * the room back. Only for a request whose turn it is: otherwise it would hold room behind one that waits for it.
   */
  reserve(bytes: number, pieceBytes: number): Promise<number>;
  /**
   * As `reserve`, while there is no room: resolves with the bytes of a small answer, which needs none. 0 if there is room or
   * nobody to answer.
   */
  reserveSmall(pieceBytes: number): Promise<number>;
}

/** A handler: gives the response, or undefined if the client wants none. */
export type Handler<Q, RI> = (
  request: Q,
  context: RequestContext,
) => RI | undefined | Promise<RI | undefined>;

/** A message with its handler; the types of both were checked by `route`. */
export interface Route {
  message: WireMessage<unknown, never, unknown, unknown>;
  handle: Handler<never, unknown>;
}

/** Pairs a message with its handler. */
export function route<Q, QI, R, RI>(
  message: WireMessage<Q, QI, R, RI>,
  handle: Handler<Q, RI>,
): Route {
  return { message, handle };
}

/** Routes by API key. */
export type RouteTable = ReadonlyMap<number, Route>;

/** The table of routes; each key may be there once. */
export function buildRouteTable(routes: readonly Route[]): RouteTable {
  const table = new Map(routes.map((one) => [one.message.key, one]));
  if (table.size !== routes.length) throw new TypeError("two routes have the same key");
  return table;
}
