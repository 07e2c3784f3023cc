// Errors of clients, which become ERROR frames.

/** Why a connection ends with an ERROR frame; also a label of metrics. */
export type StompErrorKind =
  /** The bytes are no frame. */
  | "malformed"
  /** A frame exceeds a limit. */
  | "too-large"
  /** A frame that is not valid here, or whose headers are not. */
  | "invalid"
  | "unsupported-version"
  | "unauthenticated"
  | "forbidden"
  /** The broker refuses the request: a limit, a schema, the disk. */
  | "refused"
  /** The client sent a frame, or its heart-beats, too slowly. */
  | "silent"
  | "stopping"
  | "internal";

/** An error that the client is told; the connection ends then (STOMP 1.2, "ERROR"). */
export class StompError extends Error {
  override readonly name = "StompError";
  readonly kind: StompErrorKind;
  /** Further headers of the ERROR frame. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    kind: StompErrorKind,
    message: string,
    options: { headers?: Readonly<Record<string, string>>; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.kind = kind;
    this.headers = options.headers ?? {};
  }
}
