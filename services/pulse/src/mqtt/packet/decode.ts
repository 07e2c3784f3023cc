// Decodes the packets of clients, strictly: what the standard forbids is refused with its reason code.
import type {
  AcknowledgementPacket,
  ClientPacket,
  ConnectPacket,
  PublishPacket,
  Qos,
  SubscribePacket,
  SubscriptionRequest,
  UnsubscribePacket,
  Version,
  Will,
} from "./packets.ts";
import { readProperties, type Properties } from "./properties.ts";
import { PacketReader } from "./reader.ts";
import { MqttError, REASON } from "./reason-codes.ts";

const NO_PROPERTIES: Properties = Object.freeze({});
/** Reason codes that a client may send in each packet (tables 3-4, 3-5, 3-6, 3-7, 3-10 of MQTT 5). */
const RECEIVED = new Set([0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]);
const RELEASED = new Set([0x00, 0x92]);
const DISCONNECTED = new Set([
  0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
]);

/** Type of a CONNECT in the first byte. */
export const CONNECT_TYPE = 1;
/** Bit of the protocol level with which bridges introduce themselves: Mosquitto's `try_private`, on by default. */
const BRIDGE_BIT = 0x80;

/**
 * True if the answer to a CONNECT has the form of MQTT 5. Clients of unknown levels can only be expected to understand the
 * two bytes of a CONNACK of MQTT 3.1.1 (MQTT-3.1.2-2 there).
 */
export function isVersion5(connect: Buffer): boolean {
  const isNamed = connect.length > 6 && connect.toString("latin1", 2, 6) === "MQTT";
  return isNamed && (connect[6]! & ~BRIDGE_BIT) === 5;
}

/**
 * Decodes a packet. `version` is that of the connection; for a CONNECT, which names it, it is ignored.
 * Throws an `MqttError` with the reason code of the standard.
 */
export function decodePacket(firstByte: number, body: Buffer, version: Version): ClientPacket {
  const type = firstByte >> 4;
  const flags = firstByte & 0x0f;
  if (type === 3) return decodePublish(flags, body, version);
  checkFlags(type, flags);
  const reader = new PacketReader(body);
  switch (type) {
    case CONNECT_TYPE:
      return decodeConnect(reader);
    case 4:
      return decodeAcknowledgement("puback", reader, version);
    case 5:
      return decodeAcknowledgement("pubrec", reader, version);
    case 6:
      return decodeAcknowledgement("pubrel", reader, version);
    case 7:
      return decodeAcknowledgement("pubcomp", reader, version);
    case 8:
      return decodeSubscribe(reader, version);
    case 10:
      return decodeUnsubscribe(reader, version);
    case 12:
      reader.finish();
      return { type: "pingreq" };
    case 14:
      return decodeDisconnect(reader, version);
    case 15:
      if (version === 5) return { type: "auth" };
      throw new MqttError(REASON.protocolError, "AUTH does not exist in MQTT 3.1.1");
    default:
      throw new MqttError(REASON.protocolError, `clients do not send packets of type ${type}`);
  }
}

function checkFlags(type: number, flags: number): void {
  const expected = type === 6 || type === 8 || type === 10 ? 2 : 0;
  if (flags === expected) return;
  throw new MqttError(REASON.malformed, `packets of type ${type} have the flags ${expected}`);
}

function decodeConnect(reader: PacketReader): ConnectPacket {
  const name = reader.text();
  const level = reader.byte();
  const version = level & ~BRIDGE_BIT;
  if (name !== "MQTT" || (version !== 4 && version !== 5)) {
    throw new MqttError(REASON.unsupportedVersion, "MQTT 3.1.1 and 5 are supported");
  }
  const flags = reader.byte();
  checkConnectFlags(flags, version);
  const keepAliveSeconds = reader.uint16();
  const properties = version === 5 ? readProperties(reader, "connect") : NO_PROPERTIES;
  const clientId = reader.text();
  const will = (flags & 0x04) === 0 ? undefined : readWill(reader, flags, version);
  const user = (flags & 0x80) === 0 ? undefined : reader.text();
  const password = (flags & 0x40) === 0 ? undefined : reader.binary();
  reader.finish();
  checkAuthentication(properties);
  const cleanStart = (flags & 0x02) !== 0;
  return {
    type: "connect",
    version,
    isBridge: (level & BRIDGE_BIT) !== 0,
    cleanStart,
    keepAliveSeconds,
    properties,
    clientId,
    will,
    user,
    password,
  };
}

function checkConnectFlags(flags: number, version: Version): void {
  if ((flags & 0x01) !== 0) throw new MqttError(REASON.malformed, "the reserved flag is set");
  if ((flags & 0x18) === 0x18) throw new MqttError(REASON.malformed, "the will's QoS is 3");
  if ((flags & 0x04) === 0 && (flags & 0x38) !== 0) {
    throw new MqttError(REASON.malformed, "flags of a will without a will");
  }
  if (version === 4 && (flags & 0xc0) === 0x40) {
    throw new MqttError(REASON.malformed, "a password without a user name");
  }
}

function checkAuthentication({ authenticationMethod, authenticationData }: Properties): void {
  if (authenticationMethod === undefined && authenticationData !== undefined) {
    throw new MqttError(REASON.protocolError, "authentication data without a method");
  }
}

function readWill(reader: PacketReader, flags: number, version: Version): Will {
  const properties = version === 5 ? readProperties(reader, "will") : NO_PROPERTIES;
  return {
    topic: reader.text(),
    payload: reader.binary(),
    qos: ((flags >> 3) & 0x03) as Qos,
    retain: (flags & 0x20) !== 0,
    properties,
  };
}

function decodePublish(flags: number, body: Buffer, version: Version): PublishPacket {
  const qos = (flags >> 1) & 0x03;
  if (qos === 3) throw new MqttError(REASON.malformed, "the QoS is 3");
  const isDuplicate = (flags & 0x08) !== 0;
  if (isDuplicate && qos === 0) throw new MqttError(REASON.malformed, "DUP with QoS 0");
  const reader = new PacketReader(body);
  const topic = reader.text();
  const id = qos === 0 ? 0 : readPacketId(reader);
  const properties = version === 5 ? readProperties(reader, "publish") : NO_PROPERTIES;
  if (properties.subscriptionIds !== undefined) {
    throw new MqttError(REASON.protocolError, "a client's PUBLISH has a subscription identifier");
  }
  return {
    type: "publish",
    qos: qos as Qos,
    isDuplicate,
    retain: (flags & 0x01) !== 0,
    topic,
    id,
    properties,
    payload: reader.bytes(reader.remaining),
  };
}

function decodeAcknowledgement(
  type: AcknowledgementPacket["type"],
  reader: PacketReader,
  version: Version,
): AcknowledgementPacket {
  const id = readPacketId(reader);
  let reason = 0;
  if (version === 5 && reader.remaining > 0) {
    reason = reader.byte();
    const allowed = type === "puback" || type === "pubrec" ? RECEIVED : RELEASED;
    checkReason(reason, allowed);
    if (reader.remaining > 0) readProperties(reader, "acknowledgement");
  }
  reader.finish();
  return { type, id, reason };
}

function decodeSubscribe(reader: PacketReader, version: Version): SubscribePacket {
  const id = readPacketId(reader);
  const properties = version === 5 ? readProperties(reader, "subscribe") : NO_PROPERTIES;
  const requests: SubscriptionRequest[] = [];
  while (reader.remaining > 0) requests.push(readSubscription(reader, version));
  if (requests.length === 0) {
    throw new MqttError(REASON.protocolError, "a SUBSCRIBE without topic filters");
  }
  return { type: "subscribe", id, properties, requests };
}

function readSubscription(reader: PacketReader, version: Version): SubscriptionRequest {
  const filter = reader.text();
  const options = reader.byte();
  const reserved = version === 5 ? 0xc0 : 0xfc;
  const qos = options & 0x03;
  const retainHandling = (options >> 4) & 0x03;
  if ((options & reserved) !== 0) {
    throw new MqttError(REASON.malformed, "reserved bits of subscription options are set");
  }
  if (qos === 3) throw new MqttError(REASON.malformed, "the requested QoS is 3");
  if (retainHandling === 3) throw new MqttError(REASON.protocolError, "retain handling is 3");
  return {
    filter,
    qos: qos as Qos,
    noLocal: (options & 0x04) !== 0,
    retainAsPublished: (options & 0x08) !== 0,
    retainHandling: retainHandling as 0 | 1 | 2,
  };
}

function decodeUnsubscribe(reader: PacketReader, version: Version): UnsubscribePacket {
  const id = readPacketId(reader);
  if (version === 5) readProperties(reader, "unsubscribe");
  const filters: string[] = [];
  while (reader.remaining > 0) filters.push(reader.text());
  if (filters.length === 0) {
    throw new MqttError(REASON.protocolError, "an UNSUBSCRIBE without topic filters");
  }
  return { type: "unsubscribe", id, filters };
}

function decodeDisconnect(reader: PacketReader, version: Version): ClientPacket {
  let reason = 0;
  let properties = NO_PROPERTIES;
  if (version === 5 && reader.remaining > 0) {
    reason = reader.byte();
    checkReason(reason, DISCONNECTED);
    if (reader.remaining > 0) properties = readProperties(reader, "disconnect");
  }
  reader.finish();
  return { type: "disconnect", reason, properties };
}

function readPacketId(reader: PacketReader): number {
  const id = reader.uint16();
  if (id === 0) throw new MqttError(REASON.malformed, "the packet identifier is 0");
  return id;
}

function checkReason(reason: number, allowed: ReadonlySet<number>): void {
  if (allowed.has(reason)) return;
  throw new MqttError(
    REASON.malformed,
    `reason code 0x${reason.toString(16)} does not belong here`,
  );
}
