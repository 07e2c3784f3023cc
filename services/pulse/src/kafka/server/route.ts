// What a request handler is given, and the table of all handlers.
import type { Message } from "../protocol/message.ts";
import type { Session } from "./session.ts";

/** One request under way. */
export interface Exchange {
  readonly session: Session;
  readonly version: number;
  /** The client's own name for itself; "" if it gave none. */
  readonly clientId: string;
  /** Fires when the connection is gone. */
  readonly signal: AbortSignal;
  /** Resolves when every earlier request of the connection has been answered. */
  turn(): Promise<void>;
  /**
   * Asks for bytes of the budget of all answers; they are given back when the answer has been sent.
   * Only for a request whose turn it is: otherwise it would hold bytes behind one that waits for them.
   * False if the connection went away.
   */
  reserve(bytes: number): Promise<boolean>;
}

/** A handler: gives the response, or undefined if the client wants none. */
export type Handler<Q, RI> = (
  request: Q,
  exchange: Exchange,
) => RI | undefined | Promise<RI | undefined>;

/** A message with its handler; the types of both were checked by `route`. */
export interface Route {
  message: Message<unknown, never, unknown, unknown>;
  handle: Handler<never, unknown>;
}

/** Pairs a message with its handler. */
export function route<Q, QI, R, RI>(message: Message<Q, QI, R, RI>, handle: Handler<Q, RI>): Route {
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
