// The states of a forwarded request.

/** One of these numbers. */
export const State = {
  Idle: 0,
  /** Waits for a connection. */
  Acquiring: 1,
  /** The request is being sent or was sent, and no response has arrived. */
  Sending: 2,
  /** The response head was forwarded. */
  Answering: 3,
  Tunnel: 4,
  /** A callback decides about a failed attempt, or about a response. */
  Failing: 5,
  /** A stream of the handler replaces the upstream's response. */
  Replaced: 6,
} as const;
