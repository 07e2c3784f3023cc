// Routes, limits, budgets and callbacks shared by all connections of a Kafka server.
import type {
  ByteBudget,
  OutgoingBudget,
  OutgoingFault,
  PaceBound,
} from "@platform/kernel/sockets";
import type { AnswerRoom } from "./answer-room.ts";
import type { RouteTable } from "./route.ts";
import type { FollowToken } from "./token-watch.ts";

/** Shared by all connections of a server. */
export interface ConnectionContext {
  routes: RouteTable;
  /** Bytes of large requests being read or handled. */
  requestBudget: ByteBudget;
  /** Bytes of answers being read from the log. */
  readingBudget: ByteBudget;
  /** Bytes of answers that clients have not read. */
  outgoing: OutgoingBudget;
  /** The queue in front of `outgoing`. */
  room: AnswerRoom;
  /** Minimum rate at which a client must send a request. */
  requestPace: PaceBound;
  /** Idle connections are closed after this time, in ms. */
  idleTimeoutMs: number;
  /** Connections that have sent nothing or are not authenticated end after this time, in ms. */
  authenticationTimeoutMs: number;
  frameBytesMax: number;
  arrayItemsMax: number;
  /** Requests of one connection in flight at which reading pauses. */
  inFlightMax: number;
  followToken: FollowToken;
  /** A request was answered, or failed. */
  onRequest(name: string, version: number, durationMs: number): void;
  /** A complete request was followed by surplus bytes in its frame, which are ignored. */
  onSurplus(name: string): void;
  /** The connection is closed because of the client's behaviour, or because a handler failed. */
  onFault(fault: ConnectionFault): void;
}

/** Why the server closed a connection. */
export interface ConnectionFault {
  kind:
    | "malformed"
    | "unsupported"
    | "unauthenticated"
    | "internal"
    /** The client sent a request too slowly. */
    | "slow-request"
    | OutgoingFault;
  remoteAddress: string;
  reason: string;
  error?: unknown;
}
