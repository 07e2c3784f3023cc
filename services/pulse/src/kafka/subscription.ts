// What the members of a consumer group have subscribed to, as they tell their leader.
import type { GroupDescription } from "../consumer-group/index.ts";
import { ProtocolError } from "./protocol/error.ts";
import { Reader } from "./protocol/reader.ts";

/** The protocol type of groups whose members tell their subscriptions (Kafka's ConsumerProtocol). */
const CONSUMER_PROTOCOL_TYPE = "consumer";

/**
 * Whether any member of a group wants a topic; undefined for a group whose members do not tell. While a group
 * rebalances, and where a member cannot be understood, every topic may be wanted.
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

// ConsumerProtocolSubscription => version(INT16) topics(ARRAY OF STRING) … ; later versions only add at the end.
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
