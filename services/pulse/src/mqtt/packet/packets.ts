// The packets of MQTT 3.1.1 and 5.
import type { Properties } from "./properties.ts";

/** Protocol version: 4 is MQTT 3.1.1. */
export type Version = 4 | 5;

/** Quality of service. */
export type Qos = 0 | 1 | 2;

/** The last wish of a client (section 3.1.2.5). */
export interface Will {
  topic: string;
  payload: Buffer;
  qos: Qos;
  retain: boolean;
  properties: Properties;
}

export interface ConnectPacket {
  type: "connect";
  version: Version;
  /** True if the client is another broker that forwards messages: it gets none back that came from it. */
  isBridge: boolean;
  cleanStart: boolean;
  keepAliveSeconds: number;
  properties: Properties;
  clientId: string;
  will: Will | undefined;
  user: string | undefined;
  password: Buffer | undefined;
}

/** A PUBLISH. `topic` is empty if only an alias was sent. */
export interface PublishPacket {
  type: "publish";
  qos: Qos;
  isDuplicate: boolean;
  retain: boolean;
  topic: string;
  /** 0 with QoS 0. */
  id: number;
  properties: Properties;
  payload: Buffer;
}

/** A PUBACK, PUBREC, PUBREL or PUBCOMP. */
export interface AcknowledgementPacket {
  type: "puback" | "pubrec" | "pubrel" | "pubcomp";
  id: number;
  reason: number;
}

/** One topic filter of a SUBSCRIBE with its options. */
export interface SubscriptionRequest {
  filter: string;
  qos: Qos;
  noLocal: boolean;
  retainAsPublished: boolean;
  /** 0: send retained messages; 1: only for a new subscription; 2: never. */
  retainHandling: 0 | 1 | 2;
}

export interface SubscribePacket {
  type: "subscribe";
  id: number;
  properties: Properties;
  requests: SubscriptionRequest[];
}

export interface UnsubscribePacket {
  type: "unsubscribe";
  id: number;
  filters: string[];
}

/** A packet of a client. */
export type ClientPacket =
  | ConnectPacket
  | PublishPacket
  | AcknowledgementPacket
  | SubscribePacket
  | UnsubscribePacket
  | { type: "pingreq" }
  | { type: "disconnect"; reason: number; properties: Properties }
  | { type: "auth" };
