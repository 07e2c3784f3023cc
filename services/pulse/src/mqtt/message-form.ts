// Messages of the broker as MQTT's, and back: see message-map.ts for the whole map.
import type { RecordHeader } from "@platform/log/batch";
import { OWN_HEADER_PREFIX, readText, type Message } from "../message/message.ts";
import { SHARED_HEADERS } from "../message/message-map.ts";
import type { PublishInput } from "../publish/publish-input.ts";
import { toLevelName } from "../topic/level-name.ts";
import type { Topic } from "../topic/topics.ts";
import type { Qos } from "./packet/packets.ts";
import type { Properties, UserProperty } from "./packet/properties.ts";
import { MqttError, REASON } from "./packet/reason-codes.ts";

/*
 * The header `platform-mqtt` of a message of an MQTT client:
 *
 *     byte 0      bits 0–1 QoS, bit 2 RETAIN, bit 3 the payload is UTF-8
 *     bytes 1–6   origin: a hash of the client that published it, see Session
 */
const QOS_BITS = 0x03;
const RETAIN_BIT = 0x04;
const TEXT_BIT = 0x08;

/** Bytes of the origin of a message. */
export const ORIGIN_BYTES = 6;
/** Longest text of a property: its length has two bytes. */
const TEXT_BYTES_MAX = 65_535;
/** Longest delay that the broker takes, one year. */
const DELAY_MS_MAX = 31_536_000_000;
const NO_PROPERTIES: Properties = Object.freeze({});

/** A message of an MQTT client, before it is published. */
export interface MqttMessage {
  qos: Qos;
  retain: boolean;
  payload: Buffer;
  properties: Properties;
}

/**
 * The message as the broker publishes it. `origin`: that of the client's session.
 * Throws an `MqttError` for user properties of the broker that are unknown or invalid.
 */
export function toPublishInput(
  topic: string,
  { qos, retain, payload, properties }: MqttMessage,
  origin: Buffer,
): PublishInput {
  const mqtt = Buffer.allocUnsafe(1 + ORIGIN_BYTES);
  const isText = properties.payloadFormat === 1;
  mqtt[0] = qos | (retain ? RETAIN_BIT : 0) | (isText ? TEXT_BIT : 0);
  origin.copy(mqtt, 1);
  const input: PublishInput = { topic, payload, isWire: true, mqtt, orderKey: origin };
  const { messageExpirySeconds, contentType, responseTopic, correlationData } = properties;
  if (messageExpirySeconds !== undefined) input.ttlMs = messageExpirySeconds * 1_000;
  const headers: RecordHeader[] = [];
  if (contentType !== undefined) headers.push(textHeader(SHARED_HEADERS.contentType, contentType));
  if (responseTopic !== undefined) headers.push(textHeader(SHARED_HEADERS.replyTo, responseTopic));
  if (correlationData !== undefined) {
    headers.push({ key: SHARED_HEADERS.correlationId, value: correlationData });
  }
  for (const [name, value] of properties.userProperties ?? []) {
    if (name.startsWith(OWN_HEADER_PREFIX)) applyOwnProperty(input, name, value);
    else headers.push(textHeader(name, value));
  }
  if (headers.length > 0) input.headers = headers;
  return input;
}

function applyOwnProperty(input: PublishInput, name: string, value: string): void {
  switch (name) {
    case "platform-key":
      input.key = Buffer.from(value);
      return;
    case "platform-message-id":
      if (value === "" || value.length > 256) throw refuseProperty(name, "1 to 256 characters");
      input.messageId = value;
      return;
    case "platform-priority":
      input.priority = readInteger(name, value, -2_147_483_648, 2_147_483_647);
      return;
    case "platform-delay-ms":
      input.delayMs = readInteger(name, value, 0, DELAY_MS_MAX);
      return;
    default:
      throw refuseProperty(name, "no property of the broker");
  }
}

function readInteger(name: string, value: string, min: number, max: number): number {
  const number = /^-?\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw refuseProperty(name, `an integer from ${min} to ${max}`);
}

function refuseProperty(name: string, form: string): MqttError {
  return new MqttError(REASON.implementationSpecific, `the user property ${name} is ${form}`);
}

/** The QoS with which a message was published. Those of other protocols have the highest. */
export function qosOf({ mqtt }: Message): Qos {
  return mqtt === undefined ? 2 : ((mqtt[0]! & QOS_BITS) as Qos);
}

/** True if the message was published with RETAIN. */
export function isPublishedRetained({ mqtt }: Message): boolean {
  return mqtt !== undefined && (mqtt[0]! & RETAIN_BIT) !== 0;
}

/** True if the client with this origin published the message. */
export function isFrom({ mqtt }: Message, origin: Buffer): boolean {
  return mqtt !== undefined && mqtt.length > ORIGIN_BYTES && mqtt.subarray(1).equals(origin);
}

const topicTexts = new WeakMap<Topic, string>();

/** The MQTT name of a topic. */
export function toMqttTopic(topic: Topic): string {
  let text = topicTexts.get(topic);
  if (text === undefined) topicTexts.set(topic, (text = toLevelName(topic.name)));
  return text;
}

/** The properties with which a message is delivered. */
export function toProperties(message: Message, nowMs: number): Properties {
  const { headers, expiresAt, mqtt, key } = message;
  const isText = mqtt !== undefined && (mqtt[0]! & TEXT_BIT) !== 0;
  if (headers.length === 0 && expiresAt === undefined && !isText && key === null) {
    return NO_PROPERTIES;
  }
  const properties: Properties = {};
  const user: UserProperty[] = [];
  if (isText) properties.payloadFormat = 1;
  if (expiresAt !== undefined) {
    properties.messageExpirySeconds = Math.max(0, Math.ceil((expiresAt - nowMs) / 1_000));
  }
  for (const header of headers) {
    if (!applyShared(properties, header)) addUserProperty(user, header.key, header.value);
  }
  if (key !== null) addUserProperty(user, "platform-key", key);
  if (user.length > 0) properties.userProperties = user;
  return properties;
}

/** The first header of a shared name is the property; true if this one is. */
function applyShared(properties: Properties, { key, value }: RecordHeader): boolean {
  if (value === null || value.length > TEXT_BYTES_MAX) return false;
  if (key === SHARED_HEADERS.correlationId && properties.correlationData === undefined) {
    properties.correlationData = value;
    return true;
  }
  const name =
    key === SHARED_HEADERS.contentType
      ? "contentType"
      : key === SHARED_HEADERS.replyTo
        ? "responseTopic"
        : undefined;
  if (name === undefined || properties[name] !== undefined) return false;
  const text = readPropertyText(value);
  // A response topic may not hold wildcards.
  if (text === undefined || (name === "responseTopic" && /[+#]/.test(text))) return false;
  properties[name] = text;
  return true;
}

function addUserProperty(user: UserProperty[], name: string, value: Buffer | null): void {
  const text = value === null ? "" : (readPropertyText(value) ?? value.toString("base64"));
  const isNamed = !name.includes("\0") && name.isWellFormed();
  // Longer ones cannot be expressed.
  if (!isNamed || Buffer.byteLength(name) > TEXT_BYTES_MAX) return;
  if (Buffer.byteLength(text) <= TEXT_BYTES_MAX) user.push([name, text]);
}

/** A text of MQTT: UTF-8 without U+0000. */
function readPropertyText(value: Buffer): string | undefined {
  return value.includes(0) ? undefined : readText(value);
}

function textHeader(key: string, text: string): RecordHeader {
  return { key, value: Buffer.from(text) };
}
