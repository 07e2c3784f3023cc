// Messages with QoS 1 and 2 on their way to a client, by packet identifier.
import type { PartitionView } from "@platform/log";
import type { Message } from "../../message/message.ts";
import type { Qos } from "../packet/packets.ts";
import type { StoredOutgoing } from "./session-records.ts";

const PACKET_ID_MAX = 65_535;

/**
 * A message in flight:
 *
 *     sending   QoS 2 of a durable session: the packet identifier is being stored
 *     publish   sent, or to be sent again; PUBACK (QoS 1) completes it, PUBREC (QoS 2) leads to
 *     release   PUBREL is sent, PUBCOMP completes it
 */
export interface Outgoing {
  readonly id: number;
  readonly qos: Qos;
  phase: "sending" | "publish" | "release";
  /** The message's place in the log: it is read again for a client that comes back. */
  readonly partition: PartitionView;
  readonly offset: number;
  readonly retain: boolean;
  readonly ids: readonly number[];
  /** Not set for messages that are to be read again. */
  message: Message | undefined;
  /** True if a record of it exists. */
  isStored: boolean;
  /** True if it is sent over the current connection. */
  isSent: boolean;
  /** Called when the client has the message. */
  settle: () => void;
  /** A message of a shared subscription with QoS 1 goes to another member when the client leaves. */
  readonly isShared: boolean;
}

/** The messages of a session in flight, in order of sending. */
export class OutgoingMessages {
  readonly #byId = new Map<number, Outgoing>();
  #lastId = 0;
  /** Messages that count against the client's receive maximum. */
  sentCount = 0;

  get size(): number {
    return this.#byId.size;
  }

  values(): Iterable<Outgoing> {
    return this.#byId.values();
  }

  get(id: number): Outgoing | undefined {
    return this.#byId.get(id);
  }

  /** An unused packet identifier. There always is one: receive maximum bounds the number of messages. */
  nextId(): number {
    do this.#lastId = (this.#lastId % PACKET_ID_MAX) + 1;
    while (this.#byId.has(this.#lastId));
    return this.#lastId;
  }

  add(outgoing: Outgoing): void {
    this.#byId.set(outgoing.id, outgoing);
    if (outgoing.isSent) this.sentCount++;
  }

  markSent(outgoing: Outgoing): void {
    if (outgoing.isSent) return;
    outgoing.isSent = true;
    this.sentCount++;
  }

  delete(outgoing: Outgoing): void {
    if (this.#byId.delete(outgoing.id) && outgoing.isSent) this.sentCount--;
  }

  /** The client has left: everything is to be sent again. Messages are dropped from memory, they are in the log. */
  suspend(): void {
    for (const outgoing of this.#byId.values()) {
      outgoing.isSent = false;
      outgoing.message = undefined;
      if (outgoing.phase === "sending") outgoing.phase = "publish";
    }
    this.sentCount = 0;
  }
}

/** The stored form of a message in flight. */
export function toStoredOutgoing(outgoing: Outgoing): StoredOutgoing {
  const { phase, qos, partition, offset, retain, ids } = outgoing;
  return {
    phase: phase === "release" ? "release" : "publish",
    qos,
    topicId: partition.topic.id.toString("hex"),
    partition: partition.index,
    offset,
    retain,
    ids,
  };
}
