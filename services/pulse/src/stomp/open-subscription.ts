// Opens the subscriptions of clients, of each kind.
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import type { SharedSubscription } from "../dispatch/shared-subscription.ts";
import type { SharedSubscriptions } from "../dispatch/shared-subscriptions.ts";
import type { StartAt, Subscriptions } from "../dispatch/subscription.ts";
import { compilePattern, isPattern } from "../topic/pattern.ts";
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
    openPattern(parts, principal, subscription);
    return;
  }
  requireSubscribe(principal, name);
  subscription.noteTopic(name);
  const topic = await parts.topics.ensure(principal.tenant, name);
  if (request.group !== undefined) {
    await joinGroup(parts, principal.tenant, topic, request.group, subscription);
  } else if (subscription.isManual) {
    subscription.begin(openPrivate(parts, topic, request.startAt, subscription));
  } else {
    const sink = subscription.createSink();
    const opened = parts.subscriptions.open(topic, request.startAt, sink);
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
): Promise<void> {
  const { isDurable, startAt, prefetch, ackWaitMs = ackWaitMsDefault } = subscription.request;
  const group = await groups.ensure(tenant, name, topic, startAt);
  if (isDurable && group.memberCount > 0) {
    throw new StompError("refused", "the durable subscription has a subscriber already");
  }
  const { isManual } = subscription;
  const options = { isManual, prefetch, ackWaitMs };
  if (isManual) subscription.begin(joinManually(group, options, subscription));
  else {
    const member = group.join(subscription.createSink(), options);
    subscription.begin({ pump: () => group.pump(), close: () => member.leave() });
  }
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
function openPattern(
  parts: SubscriptionParts,
  { tenant, rights }: Principal,
  subscription: ClientSubscription,
): void {
  if (!rights.has("subscribe")) throw new StompError("forbidden", "subscribing is not allowed");
  const { destination, startAt } = subscription.request;
  const isMatch = compilePattern(destination.name);
  const matches = (name: string): boolean => {
    if (!isMatch(name) || !rights.covers("subscribe", name)) return false;
    if (parts.deadLetters.isDeadLetterName(tenant, name)) return false;
    subscription.noteTopic(name);
    return true;
  };
  if (subscription.isManual) {
    subscription.begin(openPrivatePattern(parts, tenant, matches, subscription));
    return;
  }
  const sink = subscription.createSink();
  const opened = parts.subscriptions.openPattern(tenant, matches, startAt, sink);
  subscription.begin({ pump: () => opened.subscription.pump(), close: () => opened.close() });
}

function openPrivatePattern(
  parts: SubscriptionParts,
  tenant: string,
  matches: (name: string) => boolean,
  subscription: ClientSubscription,
): Delivery {
  const byTopic = new Map<Topic, Delivery>();
  const add = (topic: Topic, startAt: StartAt): void => {
    if (topic.tenant !== tenant || !matches(topic.name)) return;
    byTopic.set(topic, openPrivate(parts, topic, startAt, subscription));
  };
  const remove = (topic: Topic): void => {
    byTopic.get(topic)?.close();
    byTopic.delete(topic);
  };
  for (const topic of parts.topics.list(tenant)) add(topic, subscription.request.startAt);
  // A later topic is followed from its first message.
  const unwatch = parts.topics.watch({ created: (topic) => add(topic, () => 0), deleted: remove });
  return {
    pump: () => byTopic.forEach((delivery) => delivery.pump()),
    close: () => {
      unwatch();
      for (const topic of Array.from(byTopic.keys())) remove(topic);
    },
  };
}
