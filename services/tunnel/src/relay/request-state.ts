// State of the current public request of a connection; one object per connection, reused.
import { ForwardingFields, RequestIds, type Exchange } from "@platform/http1";
import type { RequestTap } from "../capture/tap.ts";
import type { ConnectedTunnel } from "./connected-tunnel.ts";

/** An HTTP exchange of the relay. */
export type RelayExchange = Exchange<RequestState>;

/** State of one connection's current request. */
export class RequestState {
  readonly ids = new RequestIds();
  readonly forwarding = new ForwardingFields();
  /** The tunnel to which the request is forwarded. */
  tunnel: ConnectedTunnel | null = null;
  tap: RequestTap | null = null;
  method = "";
  /** Path without the query. */
  path = "";
  startedAtEpochMs = 0;
  /** Code of the relay's own answer; "" if a local service answered. */
  errorCode = "";
  retries = 0;
  /** Cookie field for the target if the relay's own cookie was removed; null to pass it unchanged. */
  cookie: string | null = null;

  /** Resets the state for a new request. */
  begin(): void {
    this.tunnel = null;
    this.tap = null;
    this.method = "";
    this.path = "";
    this.errorCode = "";
    this.retries = 0;
    this.cookie = null;
  }
}
