// Limits the requests of clients in flight, for a listener whose connections are those of a proxy.
import { createRetryLaterError } from "@platform/kernel/errors";
import { ConnectionBounds } from "@platform/kernel/sockets";

const RETRY_AFTER_S = 1;

/** Counts requests in flight: in total, and by IPv4 address or IPv6 /64 network, each of which may have half. */
export class ClientBounds {
  readonly #bounds: ConnectionBounds;

  constructor(requestsMax: number) {
    this.#bounds = new ConnectionBounds({ connectionsMax: requestsMax });
  }

  /** Counts a request; returns the function that ends it. Throws 503 if there are too many, 429 if the client has too many. */
  admit(address: string): () => void {
    const admission = this.#bounds.admit(address);
    if (admission === "too-many") {
      const detail = "The console has too many requests.";
      throw createRetryLaterError("overloaded", detail, RETRY_AFTER_S);
    }
    if (admission === "too-many-of-address") {
      const detail = "There are too many requests from this address.";
      throw createRetryLaterError("too_many_requests", detail, RETRY_AFTER_S);
    }
    let isOpen = true;
    return () => {
      if (isOpen) this.#bounds.release(address);
      isOpen = false;
    };
  }
}
