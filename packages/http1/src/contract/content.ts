// Taps of request bodies, filters of forwarded responses, sources of the content of other responses.
import type { Buffer } from "node:buffer";

import type { ResponseHead } from "../parse/index.ts";
import type { AnswerHeaders } from "../write/index.ts";
import type { ForwardTarget } from "./forward.ts";

/** Observes the body of a forwarded request: see `Exchange.requestTap`. */
export interface RequestTap {
  /**
   * Content without framing, once, even if several attempts send it. The bytes are a view of a read buffer: copy what is
   * kept.
   */
  onBytes(bytes: Buffer): void;
  /** Called once: `complete` after the whole body, `aborted` if the request ended before. */
  onEnd(outcome: "complete" | "aborted"): void;
}

/** The head of a forwarded response as the client will receive it. Filters may change it until it is sent. */
export interface ResponseDraft {
  status: number;
  /**
   * Reason phrase of the upstream, "" if it sent none; ignored once `status` has changed.
   */
  readonly reason: string;
  /** Fields in order, without Content-Length and Transfer-Encoding. Values are latin1; invalid ones fail the request. */
  headers: [name: string, value: string][];
  /**
   * Bytes of the content, -1 if unknown: then it is chunked, or delimited by the connection's close for HTTP/1.0. A filter
   * that changes the content sets it. For HEAD and 304 it is the length to announce, not that of any content.
   */
  contentLength: number;
  /**
   * False for HEAD, 204 and 304, which have no content: filters then get no bytes. A filter that changes `status` to or from
   * one of them sets it, and passes on the content that the new one has.
   */
  hasContent: boolean;
}

/** Chooses the filters of a forwarded response: see `Exchange.responseFilter`. `E` is the type of the exchange. */
export interface ResponseFilter<E = unknown> {
  /**
   * A final response has arrived; not called for 1xx and 101. Returns the filters in the order in which the content passes
   * them, or an empty list. May answer with `exchange.respond` or `exchange.startResponse` instead: the upstream's response
   * is then dropped. `head` is the upstream's own and valid only during the call.
   */
  onResponse(exchange: E, draft: ResponseDraft, head: ResponseHead): readonly ContentFilter[];
}

/**
 * Observes or changes the content of one forwarded response. An observer passes each chunk on unchanged.
 *
 * A filter that throws, or calls `output.fail`, fails the request: 500 if the head has not been sent, otherwise the
 * client's connection is destroyed. While the head is held, a filter may answer with `exchange.respond` instead.
 */
export interface ContentFilter {
  /**
   * True while the head must not be sent before this filter passes on bytes or the end. Otherwise it is sent after the bytes
   * that arrived with it have passed the filters.
   */
  readonly holdsHead?: boolean;
  /**
   * Content without framing, a view of a shared read buffer that is valid only during the call: it may be passed to
   * `output.write` in this call; copy what is kept.
   */
  onBytes(bytes: Buffer, output: ContentOutput): void;
  /** The content is complete: calls `output.end` now or later. */
  onEnd(output: ContentOutput): void;
  /** The client accepts bytes again after `output.write` returned false. */
  onDrain?(output: ContentOutput): void;
  /**
   * The upstream broke off after the head was sent: true if the filter ends the content itself, so that its readers learn of
   * the failure (an event of a stream). Otherwise the client's connection is destroyed.
   */
  onTruncated?(output: ContentOutput): boolean;
  /** The response ended before `output.end`: the client or the upstream was lost. No call follows. */
  onAbort?(): void;
}

/** Receives the content that leaves a filter. Calls after the end of the request have no effect. */
export interface ContentOutput {
  /**
   * Passes content on. Bytes other than those of the current `onBytes` call must not be modified afterwards. Returns false
   * if the client's buffer is full: the upstream is then paused, and a filter that has more to write waits for `onDrain`.
   */
  write(bytes: Buffer): boolean;
  /**
   * Ends the content. Ends the response as well if the upstream's content has not ended. The trailers replace those of the
   * upstream with the same names; they are omitted if the response is not chunked.
   */
  end(trailers?: readonly (readonly [name: string, value: string])[]): void;
  /** Stops reading from the upstream while this filter holds as much as it may; up to one read may still follow. */
  pause(): void;
  /** Continues after `pause`. */
  resume(): void;
  /**
   * Adds filters behind the last one, for a filter that changes the head before it passes anything on: those behind it are
   * chosen by the changed head.
   */
  append(filters: readonly ContentFilter[]): void;
  /** Fails the request after an asynchronous error. */
  fail(error: unknown): void;
  /**
   * Drops this response and forwards the request to another target, as long as nothing has been sent: all filters of the
   * response are aborted, those of the next one are chosen again. False, without any effect, after the head was sent, for a
   * request whose body was not collected, and after as many attempts as a request may have.
   */
  retry(target: ForwardTarget): boolean;
}

/** A response head in bytes. */
export interface PreparedHead {
  readonly status: number;
  /** Status line and fields with their CRLF, including Content-Length, without Connection and the empty line. */
  readonly head: Buffer;
  /** True if the head contains a Date; otherwise it is added. */
  readonly isDated?: boolean;
  /** Size of the content that follows. */
  readonly contentLength: number;
}

/** Content of a response that is read as fast as the client accepts it: see `sendContent`. */
export interface ContentSource {
  /** Returns the next bytes, null at the end. They must not be modified afterwards. A rejection destroys the connection. */
  read(): Buffer | null | Promise<Buffer | null>;
  /** Called exactly once: the content was read to its end, or the request has ended before. */
  close(): void;
}

/** Alternatives for the head of a streamed response. */
export type StreamStart = StreamHead | PreparedHead;

/** The head of a streamed response. */
export interface StreamHead {
  readonly status: number;
  readonly headers?: AnswerHeaders;
  readonly contentLength?: number;
}
