// Fields of a route that bound its requests in size and time.
import { BYTES_MAX, DAY_MS, unset, wholeNumber } from "./value.ts";

/** Fields of {@link BoundFields} with their schemas. */
export const boundFields = {
  max_body_size: unset(wholeNumber(1, BYTES_MAX)).meta({
    description: "maximum size of a request body in bytes; default: the key max_body_size",
  }),
  connect_timeout_ms: unset(wholeNumber(1, DAY_MS)).meta({
    description: "timeout for opening a connection to the upstream, including TLS, in ms",
  }),
  response_timeout_ms: unset(wholeNumber(1, DAY_MS)).meta({
    description: "timeout from the last byte of the request to the response head, in ms",
  }),
  idle_timeout_ms: unset(wholeNumber(1, DAY_MS)).meta({
    description: "idle timeout inside a body, a stream or a WebSocket, in ms",
  }),
  total_timeout_ms: unset(wholeNumber(1, DAY_MS)).meta({
    description: "timeout for the whole request up to the response head, including retries, in ms",
  }),
};

/** Validated {@link boundFields}. */
export interface BoundFields {
  readonly max_body_size?: number;
  readonly connect_timeout_ms?: number;
  readonly response_timeout_ms?: number;
  readonly idle_timeout_ms?: number;
  readonly total_timeout_ms?: number;
}
