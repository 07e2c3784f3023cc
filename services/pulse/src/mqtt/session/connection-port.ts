// The port through which a session uses the connection of its client.
import type { ReadAhead } from "../../dispatch/read-ahead.ts";
import type { FeedBatch } from "../../dispatch/feed.ts";
import type { Rights } from "../../topic/rights.ts";
import type { Topic } from "../../topic/topics.ts";
import type { OutgoingPublish } from "../packet/encode.ts";
import type { Reason } from "../packet/reason-codes.ts";

/** The form in which messages of a topic are sent to a client. */
export interface DeliveryForm {
  /** Subscription identifiers. */
  ids: readonly number[];
  /** True if RETAIN is sent as published. */
  retainAsPublished: boolean;
}

/** The connection of a session's client. */
export interface SessionConnection {
  readonly rights: Rights;
  /** Messages with QoS 1 and 2 that the client takes before it acknowledges. */
  readonly receiveMaximum: number;
  /** Counts what was read for the client and not sent yet. */
  readonly readAhead: ReadAhead;
  /** True if the client reads fast enough for more messages. When that becomes true again, it calls `Session.pump`. */
  canSend(): boolean;
  /** Sends a message. False if it is larger than the client accepts: it then counts as delivered (MQTT-3.1.2-25). */
  sendPublish(topic: Topic, publish: OutgoingPublish): boolean;
  /** Sends a batch with QoS 0, encoded once for all clients of its form. False if each message must be sent by itself. */
  sendBatch(topic: Topic, batch: FeedBatch, form: DeliveryForm): boolean;
  sendRelease(packetId: number, reason: Reason): void;
  /** Ends the connection. */
  end(reason: Reason, detail: string): void;
}
