// The phases of a client connection.

/** What a connection is doing. */
export const Phase = {
  /** Between requests, or within a head. */
  Head: 0,
  /** A request is with the handler. */
  Active: 1,
  /** The answer is out, the rest of the request body is thrown away. */
  Draining: 2,
  /** Nothing is written any more; what still comes is thrown away until the client closes. */
  Closing: 3,
  /** Bytes go to and fro after an upgrade. */
  Tunnel: 4,
  Closed: 5,
} as const;

/** One of the values of `Phase`. */
export type PhaseKind = (typeof Phase)[keyof typeof Phase];
