// Properties of MQTT 5 (section 2.2.2): one table from which reading and writing follow.
import { MqttError, REASON } from "./reason-codes.ts";
import type { PacketReader } from "./reader.ts";
import { variableLength, type PacketWriter } from "./writer.ts";

/** Values by property. */
export interface Properties {
  payloadFormat?: number;
  messageExpirySeconds?: number;
  contentType?: string;
  responseTopic?: string;
  correlationData?: Buffer;
  subscriptionIds?: readonly number[];
  sessionExpirySeconds?: number;
  assignedClientId?: string;
  serverKeepAliveSeconds?: number;
  authenticationMethod?: string;
  authenticationData?: Buffer;
  requestProblemInformation?: number;
  willDelaySeconds?: number;
  requestResponseInformation?: number;
  responseInformation?: string;
  serverReference?: string;
  reasonString?: string;
  receiveMaximum?: number;
  topicAliasMaximum?: number;
  topicAlias?: number;
  maximumQos?: number;
  retainAvailable?: number;
  userProperties?: readonly UserProperty[];
  maximumPacketBytes?: number;
  wildcardAvailable?: number;
  subscriptionIdsAvailable?: number;
  sharedAvailable?: number;
}

/** A user property. Names may repeat, and their order counts. */
export type UserProperty = readonly [name: string, value: string];

/** The parts of packets that have properties. */
export type PropertyOwner =
  | "connect"
  | "will"
  | "connack"
  | "publish"
  | "acknowledgement"
  | "subscribe"
  | "suback"
  | "unsubscribe"
  | "unsuback"
  | "disconnect"
  | "auth";

type Kind = "flag" | "uint16" | "uint32" | "variable" | "binary" | "text" | "pair";

interface Rule {
  id: number;
  name: keyof Properties;
  kind: Kind;
  owners: readonly PropertyOwner[];
  /** The reason for a value of 0 that the standard forbids. */
  zero?: typeof REASON.protocolError | typeof REASON.invalidTopicAlias;
}

const ANSWERS: readonly PropertyOwner[] = [
  "connack",
  "acknowledgement",
  "suback",
  "unsuback",
  "disconnect",
  "auth",
];

const RULES: readonly Rule[] = [
  { id: 0x01, name: "payloadFormat", kind: "flag", owners: ["publish", "will"] },
  { id: 0x02, name: "messageExpirySeconds", kind: "uint32", owners: ["publish", "will"] },
  { id: 0x03, name: "contentType", kind: "text", owners: ["publish", "will"] },
  { id: 0x08, name: "responseTopic", kind: "text", owners: ["publish", "will"] },
  { id: 0x09, name: "correlationData", kind: "binary", owners: ["publish", "will"] },
  {
    id: 0x0b,
    name: "subscriptionIds",
    kind: "variable",
    owners: ["publish", "subscribe"],
    zero: REASON.protocolError,
  },
  {
    id: 0x11,
    name: "sessionExpirySeconds",
    kind: "uint32",
    owners: ["connect", "connack", "disconnect"],
  },
  { id: 0x12, name: "assignedClientId", kind: "text", owners: ["connack"] },
  { id: 0x13, name: "serverKeepAliveSeconds", kind: "uint16", owners: ["connack"] },
  { id: 0x15, name: "authenticationMethod", kind: "text", owners: ["connect", "connack", "auth"] },
  { id: 0x16, name: "authenticationData", kind: "binary", owners: ["connect", "connack", "auth"] },
  { id: 0x17, name: "requestProblemInformation", kind: "flag", owners: ["connect"] },
  { id: 0x18, name: "willDelaySeconds", kind: "uint32", owners: ["will"] },
  { id: 0x19, name: "requestResponseInformation", kind: "flag", owners: ["connect"] },
  { id: 0x1a, name: "responseInformation", kind: "text", owners: ["connack"] },
  { id: 0x1c, name: "serverReference", kind: "text", owners: ["connack", "disconnect"] },
  { id: 0x1f, name: "reasonString", kind: "text", owners: ANSWERS },
  {
    id: 0x21,
    name: "receiveMaximum",
    kind: "uint16",
    owners: ["connect", "connack"],
    zero: REASON.protocolError,
  },
  { id: 0x22, name: "topicAliasMaximum", kind: "uint16", owners: ["connect", "connack"] },
  {
    id: 0x23,
    name: "topicAlias",
    kind: "uint16",
    owners: ["publish"],
    zero: REASON.invalidTopicAlias,
  },
  { id: 0x24, name: "maximumQos", kind: "flag", owners: ["connack"] },
  { id: 0x25, name: "retainAvailable", kind: "flag", owners: ["connack"] },
  {
    id: 0x26,
    name: "userProperties",
    kind: "pair",
    owners: ["connect", "will", "publish", "subscribe", "unsubscribe", ...ANSWERS],
  },
  {
    id: 0x27,
    name: "maximumPacketBytes",
    kind: "uint32",
    owners: ["connect", "connack"],
    zero: REASON.protocolError,
  },
  { id: 0x28, name: "wildcardAvailable", kind: "flag", owners: ["connack"] },
  { id: 0x29, name: "subscriptionIdsAvailable", kind: "flag", owners: ["connack"] },
  { id: 0x2a, name: "sharedAvailable", kind: "flag", owners: ["connack"] },
];

const byId = new Map(RULES.map((rule) => [rule.id, rule]));
const NONE: Properties = Object.freeze({});

/**
 * Reads the properties of a part of a packet. Throws 0x81 for unknown properties and values that cannot be read, 0x82 for
 * repeated ones and forbidden values, 0x94 for the topic alias 0.
 */
export function readProperties(reader: PacketReader, owner: PropertyOwner): Properties {
  const length = reader.variable();
  if (length === 0) return NONE;
  const part = reader.part(length);
  const values: Record<string, unknown> = {};
  while (part.remaining > 0) readProperty(part, owner, values);
  return values;
}

function readProperty(
  part: PacketReader,
  owner: PropertyOwner,
  values: Record<string, unknown>,
): void {
  const id = part.variable();
  const rule = byId.get(id);
  if (rule === undefined || !rule.owners.includes(owner)) {
    throw new MqttError(REASON.malformed, `property 0x${id.toString(16)} does not belong here`);
  }
  const { name } = rule;
  const value = readValue(part, rule);
  if (rule.zero !== undefined && value === 0) throw new MqttError(rule.zero, `${name} is 0`);
  if (rule.kind === "pair" || (name === "subscriptionIds" && owner === "publish")) {
    const list = (values[name] ??= []) as unknown[];
    list.push(value);
    return;
  }
  if (values[name] !== undefined) {
    throw new MqttError(REASON.protocolError, `${name} is there twice`);
  }
  values[name] = name === "subscriptionIds" ? [value] : value;
}

function readValue(part: PacketReader, { kind, name }: Rule): unknown {
  switch (kind) {
    case "flag": {
      const value = part.byte();
      if (value > 1) throw new MqttError(REASON.protocolError, `${name} is neither 0 nor 1`);
      return value;
    }
    case "uint16":
      return part.uint16();
    case "uint32":
      return part.uint32();
    case "variable":
      return part.variable();
    case "binary":
      return part.binary();
    case "text":
      return part.text();
    case "pair":
      return [part.text(), part.text()];
    default:
      return kind satisfies never;
  }
}

/** Size of the encoded properties without their length. */
export function measureProperties(properties: Properties): number {
  let bytes = 0;
  for (const { name, kind } of RULES) {
    const value = properties[name];
    if (value === undefined) continue;
    if (name === "subscriptionIds") {
      for (const id of value as number[]) bytes += 1 + variableLength(id);
    } else if (kind === "pair") {
      for (const [key, text] of value as UserProperty[]) {
        bytes += 5 + Buffer.byteLength(key) + Buffer.byteLength(text);
      }
    } else bytes += 1 + measureValue(kind, value);
  }
  return bytes;
}

function measureValue(kind: Kind, value: unknown): number {
  if (kind === "text") return 2 + Buffer.byteLength(value as string);
  if (kind === "binary") return 2 + (value as Buffer).length;
  return { flag: 1, uint16: 2, uint32: 4, variable: 4, pair: 0 }[kind];
}

/** Writes properties with their length, as `measureProperties` has measured them. */
export function writeProperties(
  writer: PacketWriter,
  properties: Properties,
  length: number,
): void {
  writer.variable(length);
  if (length === 0) return;
  for (const { id, name, kind } of RULES) {
    const value = properties[name];
    if (value === undefined) continue;
    if (name === "subscriptionIds") {
      for (const own of value as number[]) {
        writer.byte(id);
        writer.variable(own);
      }
    } else if (kind === "pair") {
      for (const [key, text] of value as UserProperty[]) {
        writer.byte(id);
        writer.text(key);
        writer.text(text);
      }
    } else {
      writer.byte(id);
      writeValue(writer, kind, value);
    }
  }
}

function writeValue(writer: PacketWriter, kind: Kind, value: unknown): void {
  if (kind === "text") writer.text(value as string);
  else if (kind === "binary") writer.binary(value as Buffer);
  else if (kind === "uint16") writer.uint16(value as number);
  else if (kind === "uint32") writer.uint32(value as number);
  else writer.byte(value as number);
}
