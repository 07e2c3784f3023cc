// The interface of a client's connection for forwarding.
import type { Socket } from "node:net";

import type { Outflow } from "@platform/kernel/sockets";

import type { Exchange, RequestOutcome } from "../contract/exchange.ts";
import type { ForwardTarget } from "../contract/forward.ts";
import type { Engine } from "../engine/engine.ts";
import type { RequestParser } from "../parse/index.ts";
import type { Refused } from "../write/refused.ts";

/** Receives the chunks of one request body. */
export interface BodySink {
  /**
   * True if the chunked coding is kept: then chunks are validated wire bytes including trailers, otherwise data.
   */
  readonly takesWireBytes: boolean;
  /** If false, bytes are valid only until `onBody` returns. */
  readonly keepsPieces?: boolean;
  /** Receives bytes. `isLast` is true once, possibly without bytes. */
  onBody(bytes: Buffer, start: number, end: number, isLast: boolean): void;
  /** The body is malformed, too large or too slow. No call of `onBody` follows. */
  onBodyRefused(refused: Refused): void;
}

/** The server of a client. */
interface ForwardHost<U> {
  readonly engine: Engine;
  /** Endless answers are ended as soon as they begin. */
  readonly endsStreams: boolean;
  onHandlerError(error: unknown, exchange: Exchange<U>): void;
}

/** Reports the end of requests. */
interface EndReporter {
  /** Calls `onEnd` unless it has been called for this request; `nowMs` is the time of the end. */
  send<U>(
    exchange: ForwardClient<U>,
    outcome: RequestOutcome,
    nowMs: number,
    upstreamMs: number,
    attempts: number,
    target: ForwardTarget | null,
  ): void;
}

/** An exchange with the operations that forwarding needs of its connection. */
export interface ForwardClient<U> extends Exchange<U> {
  readonly head: RequestParser;
  readonly socket: Socket;
  readonly host: ForwardHost<U>;
  readonly outflow: Outflow;
  readonly minor: 0 | 1;
  /** The handler is being called for the current request. */
  readonly isHandling: boolean;
  /** The whole request body has been received. */
  readonly bodyDone: boolean;
  /** A part of the request body was read before: a client that waited for 100 has got it, and there are no trailers. */
  readonly isBodyBegun: boolean;
  /** Status of the current response, 0 before. */
  readonly status: number;
  /** A response of the handler has been started and not ended. */
  readonly isStreaming: boolean;
  readonly methodId: RequestParser["methodId"];
  readonly endReport: EndReporter;
  /** The connection stays open after the current response. */
  keepAlive: boolean;
  bytesIn: number;
  bytesOut: number;
  /** Sends the content of the writer. */
  flush(): void;
  /** Begins the response of a forwarded request: decides whether the connection stays open. */
  beginForwardedAnswer(status: number, needsClose: boolean): void;
  /** Sends the request body to `sink`, including bytes that are already here. */
  attachSink(sink: BodySink): void;
  /** Keeps further body bytes in the input. */
  detachSink(): void;
  /** Responds with a refusal and closes the connection. */
  refuseBody(refused: Refused): void;
  /** Responds with 500 after an exception of a handler or observer, and closes the connection. */
  failHandler(error: unknown): void;
  /** Becomes a tunnel: further input goes to `Forwarding.onTunnelInput`. */
  becomeTunnel(): void;
  /** Processes buffered input as far as the phase allows. */
  pump(): void;
  /** The response is complete: continues with the next request or closes. */
  finish(): void;
}
