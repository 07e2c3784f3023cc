// The parts that all connections of a Kafka server share: routes, bounds, budgets and callbacks.
import type {
  OutgoingBounds,
  OutgoingBudget,
  OutgoingFault,
  PaceBound,
  ReadShortener,
} from "@platform/kernel/sockets";
import type { AnswerRoom } from "./answer-room.ts";
import type { ByteBudget } from "./budget.ts";
import type { RouteTable } from "./route.ts";

/** Shared by all connections of a server. */
export interface ConnectionContext {
  routes: RouteTable;
  /** Bytes of large requests that are being read or handled. */
  requestBudget: ByteBudget;
  /** Bytes of answers that are being read from the log. */
  readingBudget: ByteBudget;
  /** Bytes of answers that clients have not read. */
  outgoing: OutgoingBudget;
  /** In front of `outgoing`. */
  room: AnswerRoom;
  /** The least that a client must read while answers wait for it. */
  outgoingBounds: OutgoingBounds;
  /** The least that a client must send of a request that it has begun. */
  requestPace: PaceBound;
  /** A connection on which nothing happens is closed after this time, in ms. */
  idleTimeoutMs: number;
  frameBytesMax: number;
  arrayItemsMax: number;
  /** Requests of one connection under way at once; then it is not read any further. */
  inFlightMax: number;
  shortenReads: ReadShortener;
  /** A request was answered, or failed. */
  onRequest(name: string, version: number, durationMs: number): void;
  /** A complete request was followed by bytes of its frame, which are ignored. */
  onSurplus(name: string): void;
  /** The connection is closed because of what the client does or sent, or because a handler failed. */
  onFault(fault: ConnectionFault): void;
}

/** Why a connection was closed by us. */
export interface ConnectionFault {
  kind:
    | "malformed"
    | "unsupported"
    | "unauthenticated"
    | "internal"
    /** It sent too little of a request that it had begun. */
    | "slow-request"
    | OutgoingFault;
  remoteAddress: string;
  reason: string;
  error?: unknown;
}
