// The contract between the engine and a handler: one request and its response.
import type { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import type { PeerCertificate } from "node:tls";

import type { Outflow } from "@platform/kernel/sockets";

import type { RequestHead, ResponseHead } from "../parse/index.ts";
import type { Answer, AnswerHeaders, HeadWriter, PreparedAnswer } from "../write/index.ts";
import type { RequestTap, ResponseFilter, StreamStart } from "./content.ts";
import type { ForwardFailure, ForwardTarget, Tunnel } from "./forward.ts";
import type { UpstreamStream } from "./upstream.ts";

/** Properties of the client's connection; the same object for all of its requests. */
export interface ConnectionInfo {
  /** IP address without brackets, with IPv4-mapped IPv6 addresses as IPv4; "" on a Unix socket. */
  readonly remoteAddress: string;
  readonly remotePort: number;
  readonly localAddress: string;
  readonly localPort: number;
  /** True for TLS. */
  readonly secure: boolean;
  /** TLS details, null without TLS. */
  readonly tls: TlsInfo | null;
}

/** Results of the TLS handshake. */
export interface TlsInfo {
  /** SNI name of the client in lower case; "" if absent. */
  readonly serverName: string;
  readonly protocol: string;
  /** Verified client certificate, null if it was not requested or not sent. */
  readonly clientCertificate: PeerCertificate | null;
}

/**
 * One request and its response, independent of the protocol version.
 *
 * The object is reused for the next request on the connection: a handler that continues after I/O compares `sequence` and
 * stops if it has changed or `aborted` is true. Exactly one of `respond`, `startResponse`, `forward` or `destroy` answers
 * a request; a second one throws.
 */
export interface Exchange<U = unknown> {
  /** The request head; its views are valid until the response is complete. */
  readonly head: RequestHead;
  readonly connection: ConnectionInfo;
  /** Number of the request on this connection, starting at 1. */
  readonly sequence: number;
  /** Monotonic milliseconds when the head was complete. */
  readonly startedAtMs: number;
  /** True if the client has disconnected; responses are then dropped. */
  readonly aborted: boolean;
  /** True if a response has been started by the handler or by a forwarded response head. */
  readonly answered: boolean;
  /** Body bytes received from the client so far, without framing. */
  readonly bytesIn: number;
  /** Body bytes written to the client's socket so far, without framing. */
  readonly bytesOut: number;
  /** The handler's own state; the same object for all requests of the connection. */
  userData: U;
  /** Maximum request body in bytes, reset to the server's limit for each request; enforced while streaming (413). */
  bodyBytesMax: number;
  /** Idle timeout of the request body in milliseconds, reset to the server's for each request (408); 0 disables it. */
  bodyIdleMs: number;
  /**
   * Path to forward instead of the path as sent, before the plan strips and prepends; null keeps it. Must start with `/`.
   * Cleared for each request.
   */
  forwardPath: string | null;
  /** Query to forward instead of the query as sent, without `?`; "" removes it, null keeps it. Cleared for each request. */
  forwardQuery: string | null;
  /** The body that `readBody` has collected or `replaceBody` has set: it is forwarded with its length. Otherwise null. */
  readonly collected: Buffer | null;
  /**
   * Set in `onFailure` by a handler that answers after it has returned: the engine then sends no error response. The handler
   * must answer or, with a body that was collected, forward the request again, unless `aborted`. Cleared for each request.
   */
  answersLater: boolean;
  /**
   * Observes the body of this request while it is forwarded; set before `forward`, cleared for each request.
   * `addRequestTap` adds one to those that are there.
   */
  requestTap: RequestTap | null;
  /** Observes or changes the forwarded response; set before its head arrives, cleared for each request. */
  responseFilter: ResponseFilter<Exchange<U>> | null;
  /**
   * Called once, before `onEnd`, if the client disconnects before the response is complete and the response is not that of
   * an upstream. Cleared for each request.
   */
  onAborted: ((exchange: Exchange<U>) => void) | null;
  /**
   * Called exactly once when the request has ended: its response is complete, its tunnel is closed, or the connection was
   * lost. Set it in the handler; it is cleared for each request.
   */
  onEnd: ((exchange: Exchange<U>, end: RequestEnd) => void) | null;

  /**
   * Sends a whole response. Content-Length, Date and Connection are added; HEAD, 204 and 304 have no body. Throws
   * (`HeadWriteError`, `AnswerError`) for an invalid field before anything is sent.
   */
  respond(answer: Answer | PreparedAnswer): void;
  /**
   * Starts a streamed response; without `contentLength` it is chunked (close-delimited for HTTP/1.0). Throws like `respond`.
   */
  startResponse(head: StreamStart): void;
  /** Sends a chunk of a streamed response. On false, wait for `onDrain`. The bytes must not be modified afterwards. */
  write(chunk: Uint8Array | string): boolean;
  /** Written bytes that the system has not accepted yet; at 0 the memory of all written bytes is free again. */
  readonly unsentBytes: number;
  /** Memory budget for data that the producer of a large response reads ahead. Its claims end with the response. */
  readonly outflow: AnswerMemory;
  /** Completes a streamed response. Fewer bytes than `contentLength` destroy the connection; more throw. */
  end(trailers?: AnswerHeaders): void;
  /** Called when buffered bytes have drained after `write` returned false. Cleared for each request. */
  onDrain: ((exchange: Exchange<U>) => void) | null;
  /**
   * Collects the whole request body, up to `bytesMax`, then calls `done`. After `too-large` the request is still to be
   * answered; `aborted` means that the client has disconnected. A collected body can still be forwarded.
   */
  readBody(bytesMax: number, done: ReadBodyCallback<U>): void;
  /**
   * Takes the next part of the request body, of `bytesMin` bytes or a little more, or up to its end; the rest stays at the
   * client. Parts are kept, and forwarded before the rest; after the last one the body is `collected`, and no further one may
   * be asked for. `too-large` is that of `bodyBytesMax`; otherwise like `readBody`. Trailers of the body are not forwarded.
   */
  readBodyPart(bytesMin: number, done: ReadPartCallback<U>): void;
  /**
   * Passes the request body to `receiver` as it arrives, after 100 (Continue) if the client waits for it. Once per
   * request, and not together with `readBody`. `onAborted` is called if the client disconnects.
   */
  streamBody(receiver: BodyReceiver): void;
  /** Pauses the receiver of `streamBody`: nothing is read, and the client's idle timeout is suspended. */
  pauseBody(): void;
  /** Resumes the receiver; chunks may arrive before this returns. */
  resumeBody(): void;
  /**
   * Replaces the head: `head`, as all later readers see it, is written and parsed again, and forwarded. Nothing changes if it
   * throws: `HeadChangeError` for a head that is refused, or whose framing or kind of response differs.
   */
  replaceHead(change: HeadChange): void;
  /** Like `replaceHead`, for a head that has more fields than before: all others stay as they were sent. */
  appendFields(fields: HeadChange["fields"]): void;
  /**
   * Replaces the request body, also between two attempts. The client's own has been collected, or is empty; fields that
   * describe it stay as they are. The bytes must not be modified afterwards.
   */
  replaceBody(bytes: Buffer): void;
  /** Forwards the request to a {@link ForwardTarget}. */
  forward(target: ForwardTarget, observer: ForwardObserver<U>): void;
  /**
   * Gracefully ends an endless forwarded response: an event stream by ending its content after the current chunk, a
   * WebSocket by Close frames with 1001 to both sides. Connections that do not close are destroyed after 10 s. Returns
   * false, without any effect, for other responses.
   */
  endStream(): boolean;
  /**
   * Switches protocols: sends 101 with `headers` (including Connection and Upgrade) and hands over the client's socket,
   * which the server then neither reads, counts as a connection nor closes. The request ends as complete. With `null`
   * nothing is sent: the handler writes the response's head itself.
   */
  takeSocket(headers: AnswerHeaders | null): TakenSocket;
  /** Destroys the client's connection without a response. */
  destroy(): void;
}

/** A request head in place of the client's: see {@link Exchange.replaceHead}. */
export interface HeadChange {
  readonly method: string;
  /** Origin form: path and query. */
  readonly target: string;
  /** All fields, those of the framing unchanged. */
  readonly fields: readonly (readonly [name: string, value: string])[];
}

/** A socket that a handler has taken over. */
export interface TakenSocket {
  /** Without listeners for data and end; an `error` listener is set. */
  readonly socket: Socket;
  /** Bytes that were received after the request. */
  readonly rest: Buffer;
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

/** The methods of a client's {@link Outflow} for producers of responses. */
export type AnswerMemory = Pick<Outflow, "windowBytes" | "claim" | "claimWhenRoom" | "unclaim">;

/** Result of {@link Exchange.readBody}; `body` is empty unless the outcome is `complete`. */
export type ReadBodyCallback<U> = (
  exchange: Exchange<U>,
  outcome: "complete" | "too-large" | "aborted",
  body: Buffer,
) => void;

/** Result of {@link Exchange.readBodyPart}; `part` is empty for `too-large` and `aborted`, and may be for `complete`, the last. */
export type ReadPartCallback<U> = (
  exchange: Exchange<U>,
  outcome: "part" | "complete" | "too-large" | "aborted",
  part: Buffer,
) => void;

/** Receives the chunks of a request body: see {@link Exchange.streamBody}. */
export interface BodyReceiver {
  /**
   * False if `onBody` copies what it needs: chunks are then in memory that is reused afterwards, which saves a buffer per
   * read of a large body. Default true.
   */
  readonly keepsPieces?: boolean;
  /** Receives content without framing. `isLast` is true once, possibly with an empty chunk. */
  onBody(bytes: Buffer, start: number, end: number, isLast: boolean): void;
  /** The body is malformed, larger than `bodyBytesMax` or too slow; no chunk follows. The request is still to be answered. */
  onBodyRefused(refused: { code: string; status: number; detail: string }): void;
}

/** Handles each request. Called synchronously when the head is complete; the body follows later. */
export type Handler<U> = (exchange: Exchange<U>) => void;

/**
 * Observes and modifies forwarded exchanges. One object serves many requests, with the state of each in
 * `exchange.userData`. Only `onFailure` may answer.
 */
export interface ForwardObserver<U = unknown> {
  /**
   * Appends fields to the request (X-Forwarded-*, traceparent, …), once per attempt. `stream` is the stream of the pool's
   * owner that the request is about to be written to, null for a socket.
   */
  onRequestHead?(
    exchange: Exchange<U>,
    writer: HeadWriter,
    target: ForwardTarget,
    stream: UpstreamStream | null,
  ): void;
  /**
   * A final response has arrived, and the request could be sent again: returns a target for another attempt, which drops
   * the response and its connection, or null to forward it. The head is valid only during the callback. `elapsedMs` is the
   * time since the attempt began, with the wait for a connection.
   */
  onResponse?(exchange: Exchange<U>, head: ResponseHead, elapsedMs: number): ForwardTarget | null;
  /** Appends fields to a final response head or a 101; `head` and `elapsedMs` as in {@link onResponse}. */
  onResponseHead?(
    exchange: Exchange<U>,
    head: ResponseHead,
    writer: HeadWriter,
    elapsedMs: number,
  ): void;
  /**
   * An attempt failed before any response: returns the next target or null. After null the engine responds with
   * `failure.status`, unless the callback has called `exchange.respond`.
   */
  onFailure?(exchange: Exchange<U>, failure: ForwardFailure): ForwardTarget | null;
  /** A 101 was forwarded; the tunnel is open until `Exchange.onEnd`. */
  onTunnel?(exchange: Exchange<U>, tunnel: Tunnel): void;
}
