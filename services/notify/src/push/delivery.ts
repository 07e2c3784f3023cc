// Delivers push messages to the push services of browsers (RFC 8030).
import { EgressError, type EgressFetch } from "@platform/kernel/egress";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { Delivery, Outcome, Transport } from "../delivery.ts";
import { encryptPush } from "./encryption.ts";
import type { PushContent } from "./content.ts";
import type { PushSubscriptions } from "./subscriptions.ts";
import type { Vapid } from "./vapid.ts";

/** Options of {@link PushDelivery}. */
export interface PushDeliveryOptions {
  subscriptions: PushSubscriptions;
  vapid: Vapid;
  /** Checks and pins addresses. */
  fetch: EgressFetch;
  clock: Clock;
  log: Logger;
}

/** The push service has forgotten the subscription (RFC 8030 section 7.3). */
const ENDED = new Set([404, 410]);
/** The push service will not accept this message later either. */
const REJECTED = new Set([400, 401, 403, 413]);
const RETRY_AFTER_SECONDS_MAX = 86_400;

/** Push services; each host is a destination. */
export class PushDelivery implements Transport {
  readonly #options: PushDeliveryOptions;

  constructor(options: PushDeliveryOptions) {
    this.#options = options;
  }

  destinationOf(domain: string): string {
    return domain;
  }

  async deliver({ message, address, domain }: Delivery, signal: AbortSignal): Promise<Outcome> {
    const { subscriptions, vapid, fetch, clock } = this.#options;
    const relay = domain.slice(domain.indexOf(":") + 1);
    try {
      const row = await subscriptions.get(address);
      if (row === undefined || (row.expires_at ?? Number.POSITIVE_INFINITY) <= clock.now()) {
        const reply = { relay, text: "the subscription has ended" };
        return { kind: "rejected", cause: "recipient", reply };
      }
      const { payload, ttl_s, urgency, topic } = JSON.parse(
        message.content.toString(),
      ) as PushContent;
      const keys = {
        p256dh: Buffer.from(row.p256dh, "base64url"),
        auth: Buffer.from(row.auth, "base64url"),
      };
      const response = await fetch(row.endpoint, {
        method: "POST",
        headers: {
          Authorization: vapid.authorize(row.endpoint, clock.now()),
          "Content-Encoding": "aes128gcm",
          "Content-Type": "application/octet-stream",
          TTL: String(ttl_s),
          Urgency: urgency,
          ...(topic === undefined ? {} : { Topic: topic }),
        },
        body: encryptPush(Buffer.from(JSON.stringify(payload)), keys),
        signal,
      });
      return await this.#readAnswer(response, address, relay);
    } catch (error) {
      // A repeated notification with a topic replaces the first one; others may be shown twice.
      const mayHaveArrived = error instanceof EgressError && error.code === "timeout";
      const text = error instanceof EgressError ? error.message : "the request failed";
      return { kind: "deferred", cause: "relay", reply: { relay, text }, mayHaveArrived };
    }
  }

  async #readAnswer(
    { status, ok, headers }: Response,
    id: string,
    relay: string,
  ): Promise<Outcome> {
    const { subscriptions, log } = this.#options;
    const reply = { relay, code: status, text: ok ? "accepted" : "" };
    if (ok) return { kind: "sent", reply };
    if (ENDED.has(status)) {
      await subscriptions.remove(id);
      log.info("a push subscription has ended", { subscription: id, relay });
      const text = "the subscription has ended, and was removed";
      return { kind: "rejected", cause: "recipient", reply: { ...reply, text } };
    }
    if (REJECTED.has(status)) return { kind: "rejected", cause: "message", reply };
    const seconds = Number(headers.get("retry-after") ?? Number.NaN);
    const retryAfterMs =
      seconds >= 0 && seconds <= RETRY_AFTER_SECONDS_MAX ? seconds * 1_000 : undefined;
    return { kind: "deferred", cause: "relay", reply, retryAfterMs, mayHaveArrived: false };
  }
}
