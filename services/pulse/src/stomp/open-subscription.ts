// Opens the subscriptions of clients, of each kind.
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import { accountOf, type FollowAccount } from "../dispatch/followed-topics.ts";
import type { SharedSubscription } from "../dispatch/shared-subscription.ts";
import type { SharedSubscriptions } from "../dispatch/shared-subscriptions.ts";
import type { StartAt, Subscriptions } from "../dispatch/subscription.ts";
import type { PatternRequest } from "../dispatch/topic-patterns.ts";
import { isPattern } from "../topic/pattern.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import type { Principal } from "../user/principal.ts";
import type { ClientSubscription, Delivery } from "./client-subscription.ts";
import { StompError } from "./frame/stomp-error.ts";

/*
 *                     ack:auto                            ack:client, ack:client-individual
 *     plain           a plain subscription                a private subscription for each topic
 *     group, queue    a member, acknowledges when sent    a member that acknowledges
 *     durable         the only member of a group          the same
 */

/** The parts of the broker that subscriptions use. */
export interface SubscriptionParts {
  topics: Topics;
  subscriptions: Subscriptions;
  groups: SharedSubscriptions;
  deadLetters: Pick<DeadLetterWriter, "isDeadLetterName">;
  /** Default acknowledgement timeout of groups, in ms. */
  ackWaitMs: number;
}

/** Opens a subscription; creates the topic if needed. Throws a `StompError` or a `PlatformError`. */
export async function openSubscription(
  parts: SubscriptionParts,
  principal: Principal,
  subscription: ClientSubscription,
): Promise<void> {
  const { request } = subscription;
  const { name } = request.destination;
  if (isPattern(name)) {
    await openPattern(parts, principal, subscription);
    return;
  }
  requireSubscribe(principal, name);
  subscription.noteTopic(name);
  const account = accountOf(parts.subscriptions.followed, principal);
  const topic = await parts.topics.ensure(principal.tenant, name);
  if (request.group !== undefined) {
    await joinGroup(parts, principal.tenant, topic, request.group, subscription, account);
  } else if (subscription.isManual) {
    account.take(1);
    const opened = openPrivate(parts, topic, request.startAt, subscription);
    subscription.begin(countOnce(opened, account));
  } else {
    const sink = subscription.createSink();
    const opened = parts.subscriptions.open(topic, request.startAt, sink, account);
    subscription.begin({ pump: () => opened.subscription.pump(), close: () => opened.close() });
  }
}

/** Deletes a durable subscription that has no subscriber; nothing happens if it does not exist. */
export async function deleteDurable(
  { groups, topics }: SubscriptionParts,
  principal: Principal,
  topicName: string,
  group: string,
): Promise<void> {
  requireSubscribe(principal, topicName);
  const topic = topics.find(principal.tenant, topicName);
  const found = topic === undefined ? undefined : groups.find(principal.tenant, group, topic);
  if (found === undefined) return;
  if (found.memberCount > 0) {
    throw new StompError("refused", "the durable subscription has a subscriber");
  }
  await groups.remove(found);
}

function requireSubscribe({ rights }: Principal, topic: string): void {
  if (rights.covers("subscribe", topic)) return;
  throw new StompError("forbidden", `subscribing to ${topic} is not allowed`);
}

async function joinGroup(
  { groups, ackWaitMs: ackWaitMsDefault }: SubscriptionParts,
  tenant: string,
  topic: Topic,
  name: string,
  subscription: ClientSubscription,
  account: FollowAccount,
): Promise<void> {
  const { isDurable, startAt, prefetch, ackWaitMs = ackWaitMsDefault } = subscription.request;
  const group = await groups.ensure(tenant, name, topic, startAt);
  if (isDurable && group.memberCount > 0) {
    throw new StompError("refused", "the durable subscription has a subscriber already");
  }
  const { isManual } = subscription;
  const options = { isManual, prefetch, ackWaitMs };
  account.take(1);
  if (isManual) {
    subscription.begin(countOnce(joinManually(group, options, subscription), account));
    return;
  }
  const member = group.join(subscription.createSink(), options);
  const delivery = { pump: () => group.pump(), close: () => member.leave() };
  subscription.begin(countOnce(delivery, account));
}

/** A delivery of one topic, which counts until it is closed. */
function countOnce(delivery: Delivery, account: FollowAccount): Delivery {
  return {
    pump: () => delivery.pump(),
    close: () => {
      account.give(1);
      delivery.close();
    },
  };
}

function joinManually(
  group: SharedSubscription,
  options: { isManual: boolean; prefetch: number; ackWaitMs: number },
  subscription: ClientSubscription,
): Delivery {
  const { sink, source } = subscription.createManualSink();
  const member = group.join(sink, options);
  source.current = { group, member };
  return { pump: () => group.pump(), close: () => member.leave() };
}

function openPrivate(
  { groups }: SubscriptionParts,
  topic: Topic,
  startAt: StartAt,
  subscription: ClientSubscription,
): Delivery {
  const { group, close } = groups.openPrivate(topic, startAt);
  const { prefetch, ackWaitMs = Number.POSITIVE_INFINITY } = subscription.request;
  const joined = joinManually(group, { isManual: true, prefetch, ackWaitMs }, subscription);
  return {
    pump: () => joined.pump(),
    close: () => {
      joined.close();
      close();
    },
  };
}

/** A pattern covers the topics that the client may subscribe to, also later ones. Dead letter topics never match. */
async function openPattern(
  parts: SubscriptionParts,
  principal: Principal,
  subscription: ClientSubscription,
): Promise<void> {
  const { tenant, rights } = principal;
  if (!rights.has("subscribe")) throw new StompError("forbidden", "subscribing is not allowed");
  const { destination, startAt } = subscription.request;
  const request: PatternRequest = {
    tenant,
    pattern: destination.name,
    selects: (name) => {
      if (!rights.covers("subscribe", name)) return false;
      if (parts.deadLetters.isDeadLetterName(tenant, name)) return false;
      subscription.noteTopic(name);
      return true;
    },
    account: accountOf(parts.subscriptions.followed, principal),
  };
  if (subscription.isManual) {
    subscription.begin(await openPrivatePattern(parts, request, subscription));
    return;
  }
  const sink = subscription.createSink();
  const opened = await parts.subscriptions.openPattern(request, startAt, sink);
  subscription.begin({ pump: () => opened.subscription.pump(), close: () => opened.close() });
}

async function openPrivatePattern(
  parts: SubscriptionParts,
  request: PatternRequest,
  subscription: ClientSubscription,
): Promise<Delivery> {
  const byTopic = new Map<Topic, Delivery>();
  const close = await parts.subscriptions.patterns.follow(request, {
    // A later topic is followed from its first message.
    add: (topic, isNew) => {
      const startAt = isNew ? () => 0 : subscription.request.startAt;
      byTopic.set(topic, openPrivate(parts, topic, startAt, subscription));
    },
    remove: (topic) => {
      byTopic.get(topic)?.close();
      byTopic.delete(topic);
    },
    exceed: ({ detail }) => subscription.end(detail),
  });
  return { pump: () => byTopic.forEach((delivery) => delivery.pump()), close };
}
