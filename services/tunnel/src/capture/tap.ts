// The interface through which the relay shows forwarded requests to the capture.
import type { TunnelRow } from "../database/schema.ts";

/** A forwarded request, as it begins. */
export interface TappedRequest {
  readonly tunnel: TunnelRow;
  /** Method as sent. */
  readonly method: string;
  /** Path with its query, as sent. */
  readonly path: string;
  /** Address of the public client. */
  readonly client: string;
  /** Calendar time of the head, in ms since 1970. */
  readonly startedAt: number;
  /** Id of the captured request of which this one is a replay. */
  readonly replayOf?: string;
}

/** The end of a forwarded request. */
export interface TappedEnd {
  /** Status sent to the public client, 0 without one. */
  readonly status: number;
  readonly latencyMs: number;
  /** False if either side broke off. */
  readonly isComplete: boolean;
  /** Code of the relay's own answer; "" if the local service answered. */
  readonly errorCode: string;
  /** Body bytes of request and response. */
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/**
 * Sees the bytes of one request on their way to and from the client's target: HTTP/1.1 messages as written to the stream,
 * that is, after the relay has removed its own credentials and added its fields. The tap must not keep the buffers
 * without copying: they are reused.
 */
export interface RequestTap {
  /** Id of the captured request. */
  readonly id: string;
  /** A part of the request: its head first, then its framed body. After a retry it begins again. */
  onRequestBytes(bytes: Uint8Array): void;
  /** A part of the response: heads (also 1xx), then the framed body; after a 101 the bytes of the protocol. */
  onResponseBytes(bytes: Uint8Array): void;
  /** The request is sent again on another stream: what was seen so far is void. */
  onRestart(): void;
  onEnd(end: TappedEnd): void;
}

/** Captures requests. */
export interface Capture {
  /** Captured requests of all tunnels. */
  readonly size: number;
  /** Begins a request; null if it is not captured. */
  begin(request: TappedRequest): RequestTap | null;
  /** The tunnel was deleted. */
  forget(tunnelId: string): void;
}
