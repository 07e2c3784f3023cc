// Requests that a program sends for itself, over the connections of a pool.
import type { AcquireFailure } from "../upstream/acquire.ts";

/** A request with all its fields: Host and the framing of its body are among them. */
export interface OutgoingRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** A body that is sent while it is read goes over a new connection, since it cannot be sent again. */
  readonly body?: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** False uses a new connection only. */
  readonly mayReuse?: boolean;
  /** Longest silence of the server while it is waited for, in milliseconds. */
  readonly stallMs: number;
  /**
   * Memory of the caller for a content of `length` bytes, which is then received into it before it has a reader; null receives it
   * as otherwise. It is asked once at most. `readAll` returns this memory.
   */
  readonly findMemory?: ((length: number) => Buffer | null) | undefined;
  /** Called with the number of bytes of each piece of the content; a promise lets the next one wait, which is no silence of the server. */
  readonly pace?: ((bytes: number) => Promise<void> | undefined) | undefined;
}

/** Reasons why a request failed. */
export type OutgoingFailure =
  | AcquireFailure
  /** The connection closed before a response. */
  | "no-response"
  /** The response ended before its content did. */
  | "truncated"
  | "stalled"
  | "malformed-response"
  /** The content has more bytes than its reader takes. */
  | "content-too-large"
  /** `OutgoingCall.destroy` was called. */
  | "destroyed";

/** A failed request; `detail` is the system's or the parser's code, or "". */
export class OutgoingError extends Error {
  readonly kind: OutgoingFailure;
  readonly detail: string;

  constructor(kind: OutgoingFailure, detail = "", options?: ErrorOptions) {
    super(detail === "" ? kind : `${kind}: ${detail}`, options);
    this.name = "OutgoingError";
    this.kind = kind;
    this.detail = detail;
  }
}

/** A response whose content is received. It is read once, in one of the three ways, which reject with an OutgoingError. */
export interface OutgoingAnswer {
  readonly status: number;
  /** Names in lower case; the values of fields of one name are joined. */
  readonly headers: Readonly<Record<string, string>>;
  /** Receives the whole content and returns its length. */
  readInto(target: Buffer): Promise<number>;
  /** Receives the whole content, of at most `bytesMax` bytes. */
  readAll(bytesMax: number): Promise<Buffer>;
  /** The content in pieces, which may be kept. Nothing more is received while a few hundred KiB wait. */
  chunks(): AsyncGenerator<Buffer, void, undefined>;
}

/** A request that is being sent. */
export interface OutgoingCall {
  /** Resolves with the final head. */
  readonly answer: Promise<OutgoingAnswer>;
  /** It failed before a response on a connection that had been idle: the server had most likely closed it. */
  readonly isStale: boolean;
  /** Fails the request, unless it is complete. */
  destroy(): void;
}
