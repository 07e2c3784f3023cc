// The topics subscribed by the members of a consumer group, as they report them to their leader.
import type { GroupDescription } from "../consumer-group/index.ts";
import { ProtocolError } from "./protocol/error.ts";
import { Reader } from "./protocol/reader.ts";

/** The protocol type of groups whose members report subscriptions (Kafka's ConsumerProtocol). */
const CONSUMER_PROTOCOL_TYPE = "consumer";

/**
 * True if a member of a group subscribes to a topic; `undefined` for groups of another protocol type. During a rebalance,
 * and if a subscription cannot be parsed, every topic counts as subscribed.
 */
export function readSubscriptions(
  group: GroupDescription,
): ((topic: string) => boolean) | undefined {
  if (group.protocolType !== CONSUMER_PROTOCOL_TYPE) return undefined;
  if (group.state !== "Stable") return () => true;
  const topics = new Set<string>();
  for (const { metadata } of group.members) {
    const own = readTopics(metadata);
    if (own === undefined) return () => true;
    for (const topic of own) topics.add(topic);
  }
  return (topic) => topics.has(topic);
}

// ConsumerProtocolSubscription => version(INT16) topics(ARRAY OF STRING) … ; later versions only append fields.
function readTopics(metadata: Buffer): string[] | undefined {
  const reader = new Reader(metadata);
  try {
    reader.readInt16();
    const count = reader.readInt32();
    const topics: string[] = [];
    for (let index = 0; index < count; index++) topics.push(reader.readString());
    return topics;
  } catch (error) {
    if (error instanceof ProtocolError) return undefined;
    throw error;
  }
}
