// The phases of a client connection.

/** Phases of a connection. */
export const Phase = {
  /** Between requests or within a head. */
  Head: 0,
  /** A request is being handled. */
  Active: 1,
  /** The response is sent; the rest of the request body is discarded. */
  Draining: 2,
  /** Nothing more is sent; received bytes are discarded until the client closes. */
  Closing: 3,
  /** Bytes are relayed in both directions after an upgrade. */
  Tunnel: 4,
  Closed: 5,
} as const;

/** One of the values of `Phase`. */
export type PhaseKind = (typeof Phase)[keyof typeof Phase];
