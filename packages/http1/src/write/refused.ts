// Reasons why the engine responds to a request instead of the handler.
import type { RefusalStatus } from "../parse/index.ts";

/** A refusal of the parser or one of those below. */
export interface Refused {
  /** Stable code, more specific than the status. */
  readonly code: string;
  readonly status: RefusalStatus | 408 | 413 | 500;
  /** One sentence that contains no byte of the message. */
  readonly detail: string;
}

export const requestTimeout: Refused = {
  code: "request_timeout",
  status: 408,
  detail: "The request did not arrive in time.",
};
export const requestTooSlow: Refused = {
  code: "request_too_slow",
  status: 408,
  detail: "The request body arrived too slowly.",
};
export const payloadTooLarge: Refused = {
  code: "payload_too_large",
  status: 413,
  detail: "The request body is too large.",
};
export const connectRefused: Refused = {
  code: "not_implemented",
  status: 501,
  detail: "CONNECT is not supported.",
};
export const handlerFailed: Refused = {
  code: "internal",
  status: 500,
  detail: "The request failed inside the server.",
};
