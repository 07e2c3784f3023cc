// The context of request handlers, and the route table.
import type { Requirement } from "../../access/requirement.ts";
import type { WireMessage } from "../protocol/message.ts";
import type { Session } from "./session.ts";

/** A request being handled. */
export interface RequestContext {
  readonly session: Session;
  readonly version: number;
  /** The client id; "" if the client sent none. */
  readonly clientId: string;
  /** Fires when the connection is gone. */
  readonly signal: AbortSignal;
  /**
   * Resolves when all earlier requests of the connection are answered and the client has read most of the answers, or when
   * the connection is gone.
   */
  turn(): Promise<void>;
  /**
   * Waits for room for an answer of up to `bytes`, read in pieces of up to `pieceBytes`; resolves with the granted bytes,
   * fewer while clients have much to read. 0 if there was no room in time, or the connection is gone. The answer returns
   * the room. Only call it in turn (see `turn`): otherwise it would hold room behind a request that waits for it.
   */
  reserve(bytes: number, pieceBytes: number): Promise<number>;
  /**
   * Counterpart of `reserve` while there is no room: resolves with the bytes of a small answer, which needs none. 0 if there
   * is room, or the connection is gone.
   */
  reserveSmall(pieceBytes: number): Promise<number>;
  /** Calls `run` when all of the answer was sent; not if it is dropped. */
  onSent(run: () => void): void;
}

/** A handler: returns the response, or `undefined` if the client expects none. */
export type Handler<Q, RI> = (
  request: Q,
  context: RequestContext,
) => RI | undefined | Promise<RI | undefined>;

/** A handler with what it requires of the client. */
export interface Access<Q, RI> {
  readonly requires: Requirement;
  readonly handle: Handler<Q, RI>;
}

/** A message with its handler; `route` checks their types. */
export interface Route extends Access<never, unknown> {
  message: WireMessage<unknown, never, unknown, unknown>;
}

/** Pairs a message with its handler. */
export function route<Q, QI, R, RI>(
  message: WireMessage<Q, QI, R, RI>,
  access: Access<Q, RI>,
): Route {
  return { message, ...access };
}

/** Routes by API key. */
export type RouteTable = ReadonlyMap<number, Route>;

/** Creates the route table; keys must be unique. */
export function buildRouteTable(routes: readonly Route[]): RouteTable {
  const table = new Map(routes.map((one) => [one.message.key, one]));
  if (table.size !== routes.length) throw new TypeError("two routes have the same key");
  return table;
}
