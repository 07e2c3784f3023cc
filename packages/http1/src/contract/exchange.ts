// The contract between the engine and a handler: one request and its answer.
import type { Buffer } from "node:buffer";
import type { PeerCertificate } from "node:tls";

import type { Outflow } from "@platform/kernel/sockets";

import type { RequestHead, ResponseHead } from "../parse/index.ts";
import type { Answer, AnswerHeaders, HeadWriter, PreparedAnswer } from "../write/index.ts";
import type { ForwardFailure, ForwardTarget, Tunnel } from "./forward.ts";

/** What is known of the client's connection; the same object for every request on it. */
export interface ConnectionInfo {
  /** Textual IP address without brackets; an IPv4-mapped IPv6 address is given as plain IPv4; "" on a Unix socket. */
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
  /** True over TLS. */
  readonly secure: boolean;
  /** TLS details, null without TLS. */
  readonly tls: TlsInfo | null;
}

/** What the TLS handshake settled. */
export interface TlsInfo {
  /** SNI name sent by the client, lower case; "" if none. */
  readonly serverName: string;
  readonly protocol: string;
  /** Verified client certificate, null if none was asked for or sent. */
  readonly clientCertificate: PeerCertificate | null;
}

/**
 * One request and its answer, independent of the protocol version it came by.
 *
 * The object is reused for the next request on the connection: a handler that goes on later (after I/O) remembers
 * `sequence` and stops when it has changed or `aborted` is true. Exactly one of `respond`, `startResponse`, `forward`
 * or `destroy` answers a request; a second answer throws.
 */
export interface Exchange<U = unknown> {
  /** The request's head; its views are valid until the answer is complete. */
  readonly head: RequestHead;
  readonly connection: ConnectionInfo;
  /** Counts the requests of this connection, 1 for the first. */
  readonly sequence: number;
  /** Monotonic milliseconds at which the head was complete. */
  readonly startedAtMs: number;
  /** True once the client has gone; whatever is answered then is dropped. */
  readonly aborted: boolean;
  /** True once an answer was begun (by the handler or by a forwarded response head). */
  readonly answered: boolean;
  /** Body bytes received from the client so far, framing not counted. */
  readonly bytesIn: number;
  /** Body bytes given to the client's socket so far, framing not counted. */
  readonly bytesOut: number;
  /** The handler's own record. It stays in place from request to request: reuse it. */
  userData: U;
  /** Largest request body in bytes, set from the server's limit for each request; enforced while it streams (413). */
  bodyBytesMax: number;
  /** Longest silence in the request body in milliseconds, set from the server's timeouts for each request (408); 0 for none. */
  bodyIdleMs: number;
  /**
   * Path to send upstream instead of the one that came, before the plan strips and prepends; null leaves it alone. Must
   * begin with `/`. The query is passed on as it came. Cleared for each request.
   */
  forwardPath: string | null;
  /** Called once if the client goes away before the answer is complete and no `forward` is under way. Cleared for each request. */
  onAborted: ((exchange: Exchange<U>) => void) | null;
  /**
   * Called exactly once when the request has ended: its response is complete, its tunnel is closed, or the connection was
   * lost. Set it in the handler; it is cleared for each request.
   */
  onEnd: ((exchange: Exchange<U>, end: RequestEnd) => void) | null;

  /**
   * Answers at once. Content-Length, Date and Connection are added; HEAD, 204 and 304 lose the body. A field that is not
   * allowed throws (`HeadWriteError`, `AnswerError`) before anything is sent.
   */
  respond(answer: Answer | PreparedAnswer): void;
  /**
   * Starts a streamed answer; without `contentLength` it is chunked (close-delimited for HTTP/1.0). Throws as `respond`.
   */
  startResponse(head: StreamHead): void;
  /** Sends a piece of a streamed answer. False asks to wait for `onDrain`. The bytes must not be changed afterwards. */
  write(chunk: Uint8Array | string): boolean;
  /** Bytes that were written and that the system has not taken yet; at 0 all memory that was handed over is free again. */
  readonly unsentBytes: number;
  /** Memory for what the producer of a large answer reads before it is written. Its claims end with the answer. */
  readonly outflow: AnswerMemory;
  /** Completes a streamed answer. Fewer bytes than announced destroy the connection; more throw. */
  end(trailers?: AnswerHeaders): void;
  /** Called when `write` returned false and the client has read on. Cleared for each request. */
  onDrain: ((exchange: Exchange<U>) => void) | null;
  /**
   * Collects the whole request body, up to `bytesMax`, then calls back. On `too-large` nothing has been answered yet;
   * `aborted` means that the client is gone. A body that was read this way can still be forwarded.
   */
  readBody(bytesMax: number, done: ReadBodyCallback<U>): void;
  /**
   * Hands the request body on piece by piece as it comes, 100 (Continue) sent first where the client waits for it. Once
   * for each request, and not beside `readBody`. `onAborted` tells of a client that has gone.
   */
  streamBody(receiver: BodyReceiver): void;
  /** The receiver of `streamBody` cannot take more for now: nothing is read, and the client may be idle for as long. */
  pauseBody(): void;
  /** The receiver takes more again; pieces may come before this returns. */
  resumeBody(): void;
  /** Proxies the request: see {@link ForwardTarget}. */
  forward(target: ForwardTarget, observer: ForwardObserver<U>): void;
  /**
   * Ends a forwarded answer that goes on for ever in the way that its clients understand: an event stream by the end of its
   * content, behind the chunk that is under way, a WebSocket by Close frames with 1001 to both sides. Whoever does not let it
   * come to that is cut off after 10 s. False: the answer is no such stream, and goes on.
   */
  endStream(): boolean;
  /** Drops the client's connection without an answer. */
  destroy(): void;
}

/** Outcome of a request. */
export type RequestOutcome =
  /** The whole response was sent. */
  | "complete"
  /** The tunnel after a 101 was closed. */
  | "tunnel-closed"
  /** The client's connection was lost before the response was complete. */
  | "client-aborted"
  /** No attempt to forward succeeded; the handler or the engine responded instead. */
  | "failed"
  /** The upstream broke off or timed out after its response head was passed on: the client's connection was destroyed. */
  | "truncated"
  /** The body of a forwarded request was refused: malformed (400), too large (413) or too slow (408). */
  | "request-refused";

/** The end of a request. Reused: read it inside the callback only. */
export interface RequestEnd {
  readonly outcome: RequestOutcome;
  /** Status sent to the client, 0 without a response. */
  readonly status: number;
  /** Body bytes from and to the client; in a tunnel all bytes. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** From `forward` to the upstream's response head in milliseconds, -1 without one. */
  readonly upstreamMs: number;
  /** From the request head to the end in milliseconds. */
  readonly totalMs: number;
  /** Number of attempts to forward; 0 if the request was not forwarded. */
  readonly attempts: number;
  /** Target of the last attempt, null if the request was not forwarded. */
  readonly target: ForwardTarget | null;
}

/** The part of a client's {@link Outflow} that producers of answers use. */
export type AnswerMemory = Pick<Outflow, "windowBytes" | "claim" | "claimWhenRoom" | "unclaim">;

/** The head of a streamed answer. */
export interface StreamHead {
  readonly status: number;
  readonly headers?: AnswerHeaders;
  readonly contentLength?: number;
}

/** Result of {@link Exchange.readBody}; `body` is empty unless the outcome is `complete`. */
export type ReadBodyCallback<U> = (
  exchange: Exchange<U>,
  outcome: "complete" | "too-large" | "aborted",
  body: Buffer,
) => void;

/** Takes the pieces of a request body: see {@link Exchange.streamBody}. */
export interface BodyReceiver {
  /**
   * False where it copies what it needs of each piece before `onBody` returns: pieces then lie in memory that is used again
   * afterwards, which spares a buffer for each read of a large body. True where nothing is said.
   */
  readonly keepsPieces?: boolean;
  /** A piece of the content without its framing. `isLast` comes once, perhaps with an empty piece. */
  onBody(bytes: Buffer, start: number, end: number, isLast: boolean): void;
  /** The body is malformed, larger than `bodyBytesMax`, or stopped coming; no piece follows. It is still to be answered. */
  onBodyRefused(refused: { code: string; status: number; detail: string }): void;
}

/** Takes each request. It is called synchronously when the head is complete; the body comes later. */
export type Handler<U> = (exchange: Exchange<U>) => void;

/**
 * Watches and shapes forwarded exchanges. One object serves many requests: what belongs to one is in
 * `exchange.userData`. Only `onFailure` may answer.
 */
export interface ForwardObserver<U = unknown> {
  /** Appends fields to the request, once per try (X-Forwarded-*, traceparent, …). */
  onRequestHead?(exchange: Exchange<U>, writer: HeadWriter, target: ForwardTarget): void;
  /** A final response head (or a 101) came: appends fields to it. The head is valid inside the callback only. */
  onResponseHead?(exchange: Exchange<U>, head: ResponseHead, writer: HeadWriter): void;
  /**
   * A try failed and nothing was answered: returns a target to try next, or null. After null the engine answers
   * `failure.status`, unless the callback called `exchange.respond` itself.
   */
  onFailure?(exchange: Exchange<U>, failure: ForwardFailure): ForwardTarget | null;
  /** A 101 was passed on; the tunnel lives until `Exchange.onEnd`. */
  onTunnel?(exchange: Exchange<U>, tunnel: Tunnel): void;
}
