// Encodes the packets of the server.
import type { Qos, Version } from "./packets.ts";
import { measureProperties, writeProperties, type Properties } from "./properties.ts";
import { toReturnCode, type Reason } from "./reason-codes.ts";
import { PacketWriter, variableLength } from "./writer.ts";

const ACKNOWLEDGEMENT_BYTES = { puback: 0x40, pubrec: 0x50, pubrel: 0x62, pubcomp: 0x70 } as const;

/** A PUBLISH to encode. `id` is ignored with QoS 0. */
export interface OutgoingPublish {
  topic: string;
  qos: Qos;
  id: number;
  retain: boolean;
  isDuplicate: boolean;
  properties: Properties;
  payload: Buffer;
}

/** The answer to a PINGREQ. */
export const PINGRESP = Buffer.from([0xd0, 0]);

export function encodeConnack(
  version: Version,
  reason: Reason,
  isSessionPresent: boolean,
  properties: Properties,
): Buffer {
  const length = version === 5 ? measureProperties(properties) : 0;
  const tail = version === 5 ? variableLength(length) + length : 0;
  const writer = new PacketWriter(0x20, 2 + tail);
  writer.byte(isSessionPresent ? 1 : 0);
  writer.byte(version === 5 ? reason : toReturnCode(reason));
  if (version === 5) writeProperties(writer, properties, length);
  return writer.buffer;
}

export function encodePublish(version: Version, publish: OutgoingPublish): Buffer {
  const { topic, qos, id, retain, isDuplicate, properties, payload } = publish;
  const length = version === 5 ? measureProperties(properties) : 0;
  const head = 2 + Buffer.byteLength(topic) + (qos === 0 ? 0 : 2);
  const middle = version === 5 ? variableLength(length) + length : 0;
  const flags = (isDuplicate ? 8 : 0) | (qos << 1) | (retain ? 1 : 0);
  const writer = new PacketWriter(0x30 | flags, head + middle + payload.length);
  writer.text(topic);
  if (qos > 0) writer.uint16(id);
  if (version === 5) writeProperties(writer, properties, length);
  writer.bytes(payload);
  return writer.buffer;
}

export function encodeAcknowledgement(
  version: Version,
  type: keyof typeof ACKNOWLEDGEMENT_BYTES,
  id: number,
  reason: Reason,
  properties: Properties = {},
): Buffer {
  const length = version === 5 ? measureProperties(properties) : 0;
  const isShort = version === 4 || (reason === 0 && length === 0);
  const tail = length === 0 ? 0 : variableLength(length) + length;
  const writer = new PacketWriter(ACKNOWLEDGEMENT_BYTES[type], isShort ? 2 : 3 + tail);
  writer.uint16(id);
  if (isShort) return writer.buffer;
  writer.byte(reason);
  if (length > 0) writeProperties(writer, properties, length);
  return writer.buffer;
}

/** A SUBACK or UNSUBACK. MQTT 3.1.1 has no codes in an UNSUBACK, and 0x80 for all failures in a SUBACK. */
export function encodeSubscriptionAnswer(
  version: Version,
  type: "suback" | "unsuback",
  id: number,
  reasons: readonly number[],
  properties: Properties = {},
): Buffer {
  const length = version === 5 ? measureProperties(properties) : 0;
  const middle = version === 5 ? variableLength(length) + length : 0;
  const codes = version === 4 && type === "unsuback" ? [] : reasons;
  const firstByte = type === "suback" ? 0x90 : 0xb0;
  const writer = new PacketWriter(firstByte, 2 + middle + codes.length);
  writer.uint16(id);
  if (version === 5) writeProperties(writer, properties, length);
  for (const reason of codes) writer.byte(version === 4 && reason > 2 ? 0x80 : reason);
  return writer.buffer;
}

/** A DISCONNECT, which MQTT 3.1.1 servers do not send. */
export function encodeDisconnect(reason: Reason, properties: Properties): Buffer {
  const length = measureProperties(properties);
  const writer = new PacketWriter(0xe0, 1 + variableLength(length) + length);
  writer.byte(reason);
  writeProperties(writer, properties, length);
  return writer.buffer;
}
