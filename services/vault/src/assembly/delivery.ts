// Delivery of events to webhooks and topics.
import { join } from "node:path";
import type { Service } from "@platform/chassis";
import { createEgress } from "@platform/kernel/egress";
import type { VaultConfig } from "../config.ts";
import { createDeadLetters } from "../delivery/dead-letters.ts";
import { Delivery } from "../delivery/delivery.ts";
import { createEventPolicy } from "../delivery/event-policy.ts";
import type { EventPolicy } from "../delivery/target.ts";
import type { Storage } from "./storage.ts";

export interface EventDelivery {
  readonly delivery: Delivery;
  /** Targets that users may choose. */
  readonly eventPolicy: EventPolicy;
}

/** Starts to deliver the stored events. */
export function openDelivery(
  config: VaultConfig,
  { clock, log, lifecycle }: Service,
  { store, ring, account }: Storage,
): EventDelivery {
  const { event_broker_password: password } = config;
  const eventPolicy = createEventPolicy({
    ...config,
    event_broker_password: password && lifecycle.followSecret("PLATFORM_PULSE_TOKEN", password),
  });
  const delivery = new Delivery({
    outbox: store.events,
    isWanted: ({ bucket, ruleId }) => store.buckets.wantsEvents(bucket, ruleId),
    deadLetters: createDeadLetters({
      path: join(config.data_dir, "events", "dead.jsonl"),
      now: () => clock.now(),
    }),
    fetch: createEgress({ allowedNetworks: config.event_networks }),
    policy: eventPolicy,
    masterKey: ring.webhookKey,
    origin: { region: config.region, ownerId: account.canonicalId },
    log,
    clock,
    random: Math.random,
  });
  lifecycle.onDrain("event delivery", () => delivery.close());
  return { delivery, eventPolicy };
}
