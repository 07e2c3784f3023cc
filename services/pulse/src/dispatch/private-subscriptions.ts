// Subscriptions of one client that acknowledges, outside of any group.
import type { Clock } from "@platform/kernel/time";
import type { Topic } from "../topic/topics.ts";
import type { Backlog } from "./backlog.ts";
import type { Feeds } from "./feed.ts";
import { addNewPartitions } from "./new-partitions.ts";
import type { RedeliverySettings } from "./redelivery.ts";
import { SharedSubscription } from "./shared-subscription.ts";
import { TOPIC_DELETED, type StartAt } from "./subscription.ts";
import type { Undelivered } from "./undelivered.ts";

/** The group's name in the reason of dead letters. */
const NAME = "of one client";

interface PrivateSubscriptionsOptions {
  feeds: Feeds;
  backlog: Backlog;
  clock: Clock;
  redelivery: RedeliverySettings;
  /** A message has failed too often and must become a dead letter. */
  exhausted: (undelivered: Undelivered) => void;
  /** `tick` of the subscription must be called until it returns false. */
  pending: (subscription: SharedSubscription) => void;
}

/**
 * The subscriptions: not durable, not listed, and without a part in the queue depth. What fails too often becomes a dead
 * letter, as in a group.
 */
export class PrivateSubscriptions {
  readonly #options: PrivateSubscriptionsOptions;
  readonly #open = new Set<SharedSubscription>();

  constructor(options: PrivateSubscriptionsOptions) {
    this.#options = options;
  }

  /** Opens a subscription. Its client joins it, and calls `close` after it has left. */
  open(topic: Topic, startAt: StartAt): { group: SharedSubscription; close: () => void } {
    const { feeds, backlog, clock, redelivery, exhausted, pending } = this.#options;
    const listener = {
      changed: () => undefined,
      consumed: ({ partition, offset }: { partition: number; offset: number }) =>
        backlog.noteConsumed(topic, partition, offset + 1),
      exhausted: (group: SharedSubscription, message: Undelivered["message"], failures: number) =>
        exhausted({ group, message, failures }),
      pending,
    };
    const group = new SharedSubscription(
      { tenant: topic.tenant, name: NAME, topic },
      { feeds, clock, redelivery, listener },
    );
    this.#open.add(group);
    for (const partition of topic.stored.partitions) {
      const { index, logStart, durableEnd } = partition;
      const asked = startAt(topic, partition) ?? durableEnd;
      group.seek(index, { low: Math.min(Math.max(asked, logStart), durableEnd), ranges: [] });
    }
    return { group, close: () => void this.#open.delete(group) };
  }

  /** Follows the partitions that a topic has gained. */
  grow(topic: Topic): void {
    for (const group of this.#open) if (group.topic === topic) addNewPartitions(group);
  }

  /** Ends the subscriptions to a deleted topic. */
  end(topic: Topic): void {
    for (const group of this.#open) if (group.topic === topic) group.end(TOPIC_DELETED);
  }
}
