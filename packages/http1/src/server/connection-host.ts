// The interfaces between a server and its connections.
import type { PaceBound, ReadShortener } from "@platform/kernel/sockets";

import type { Engine } from "../engine/engine.ts";
import type { RequestHead, RequestLimits } from "../parse/index.ts";
import type { PreparedAnswer } from "../write/index.ts";
import type { ServerFault } from "../contract/server.ts";
import type { Exchange } from "../contract/exchange.ts";
import type { Refused } from "../write/refused.ts";

/** A connection as its server sees it. */
export interface HostedConnection {
  /** The server drains: no request may follow the current one. */
  drain(): void;
  endStream(): boolean;
  destroy(): void;
  sweep(nowMs: number): void;
}

/** State shared by all connections of a server. */
export interface ConnectionHost<U> {
  readonly engine: Engine;
  readonly parserLimits: RequestLimits;
  readonly bodyBytesMax: number;
  readonly requestsPerConnectionMax: number;
  readonly readAheadBytesMax: number;
  readonly headMs: number;
  readonly bodyIdleMs: number;
  readonly keepAliveMs: number;
  /** Maximum time to the first request of a connection that is new when the server drains. */
  readonly firstRequestMs: number;
  readonly writeStallMs: number;
  readonly requestBodyPace: PaceBound;
  readonly answerPace: PaceBound;
  readonly lingerMs: number;
  readonly halfCloseMs: number;
  readonly draining: boolean;
  /** Endless responses are ended as soon as they begin. */
  readonly endsStreams: boolean;
  readonly shortenReads: ReadShortener;
  active: number;
  tunnels: number;
  handle(exchange: Exchange<U>): void;
  /** Creates the response to a request that the engine refuses. Never throws. */
  prepareRefusal(refused: Refused, head: RequestHead): PreparedAnswer;
  onHandlerError(error: unknown, exchange: Exchange<U>): void;
  onFault(fault: ServerFault): void;
  /** The connection has closed, or its socket was taken over. */
  forget(connection: HostedConnection): void;
}
