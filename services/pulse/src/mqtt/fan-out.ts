// Encodes a batch of messages once for all clients that receive it in the same form.
import type { FeedBatch } from "../dispatch/feed.ts";
import type { Message } from "../message/message.ts";
import type { Topic } from "../topic/topics.ts";
import { isPublishedRetained, toMqttTopic, toProperties } from "./message-form.ts";
import { encodePublish } from "./packet/encode.ts";
import type { Version } from "./packet/packets.ts";
import type { DeliveryForm } from "./session/connection-port.ts";

/** A topic alias; the topic itself is sent with a new one. */
export interface UsedAlias {
  alias: number;
  isNew: boolean;
}

/** Encoded messages. */
export interface EncodedBatch {
  bytes: Buffer;
  count: number;
  /** Size of the largest packet. */
  packetBytesMax: number;
}

const encoded = new WeakMap<FeedBatch, Map<string, EncodedBatch>>();

/** The packets of a batch with QoS 0, higher priority first, without expired messages. */
export function encodeBatch(
  topic: Topic,
  batch: FeedBatch,
  version: Version,
  form: DeliveryForm,
  used: UsedAlias | undefined,
  nowMs: number,
): EncodedBatch {
  let forms = encoded.get(batch);
  if (forms === undefined) encoded.set(batch, (forms = new Map()));
  const alias = used === undefined ? "" : `${used.alias}${used.isNew ? "+" : ""}`;
  const key = `${version}|${form.retainAsPublished ? "r" : ""}|${alias}|${form.ids.join(",")}`;
  let found = forms.get(key);
  if (found === undefined) {
    found = encodeAll(topic, batch.messages, version, form, used, nowMs);
    forms.set(key, found);
  }
  return found;
}

function encodeAll(
  topic: Topic,
  messages: readonly Message[],
  version: Version,
  form: DeliveryForm,
  used: UsedAlias | undefined,
  nowMs: number,
): EncodedBatch {
  const packets: Buffer[] = [];
  let packetBytesMax = 0;
  for (const message of sortByPriority(messages)) {
    if (message.expiresAt !== undefined && message.expiresAt <= nowMs) continue;
    const isNamed = used === undefined || (used.isNew && packets.length === 0);
    const packet = encodePublish(version, {
      topic: isNamed ? toMqttTopic(topic) : "",
      qos: 0,
      id: 0,
      retain: form.retainAsPublished && isPublishedRetained(message),
      isDuplicate: false,
      properties: {
        ...toProperties(message, nowMs),
        ...(form.ids.length === 0 ? {} : { subscriptionIds: form.ids }),
        ...(used === undefined ? {} : { topicAlias: used.alias }),
      },
      payload: message.payload,
    });
    packets.push(packet);
    packetBytesMax = Math.max(packetBytesMax, packet.length);
  }
  const bytes = packets.length === 1 ? packets[0]! : Buffer.concat(packets);
  return { bytes, count: packets.length, packetBytesMax };
}

function sortByPriority(messages: readonly Message[]): readonly Message[] {
  const first = messages[0]?.priority;
  if (messages.every(({ priority }) => priority === first)) return messages;
  return messages.toSorted((one, other) => other.priority - one.priority);
}
