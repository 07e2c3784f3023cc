// Sends messages to the client of a session, and follows those with QoS 1 and 2 until they are acknowledged.
import { setTimeout as sleep } from "node:timers/promises";
import type { PartitionView } from "@platform/log";
import { decodeBatch, splitBatches } from "@platform/log/batch";
import { toMessage, type Message } from "../../message/message.ts";
import type { StoredRanges } from "../../store/offset-ranges.ts";
import { isColdError, type PendingRecord } from "../../store/store.ts";
import { isPublishedRetained, qosOf, toMqttTopic, toProperties } from "../message-form.ts";
import type { Qos } from "../packet/packets.ts";
import { MqttError, REASON } from "../packet/reason-codes.ts";
import type { SessionConnection } from "./connection-port.ts";
import { OutgoingMessages, toStoredOutgoing, type Outgoing } from "./outgoing.ts";
import type { SessionParts } from "./session-parts.ts";
import type { SavedSession } from "./session-saver.ts";
import type { StoredOutgoing } from "./session-records.ts";
import type { View } from "./topic-reader.ts";

/** Time until object storage that did not answer is asked again. */
const COLD_RETRY_MS = 1_000;

/** The session that messages are sent for. */
export interface DeliveryOwner extends SavedSession {
  readonly parts: SessionParts;
  readonly connection: SessionConnection | undefined;
  storedCursor(place: string): StoredRanges | undefined;
  /** The client has the message at this place. */
  markDone(place: string, offset: number): void;
  /** Resolves when a message can be sent; false if the connection is gone. */
  waitForRoom(connection: SessionConnection): Promise<boolean>;
  pump(): void;
}

/** The messages of a session on their way to the client. */
export class Deliveries {
  readonly #owner: DeliveryOwner;
  readonly outgoing = new OutgoingMessages();

  constructor(owner: DeliveryOwner) {
    this.#owner = owner;
  }

  /** True if the client may be sent another message with QoS 1 or 2. */
  hasQuota(connection: SessionConnection): boolean {
    return this.outgoing.sentCount < connection.receiveMaximum;
  }

  stored(packetId: number): StoredOutgoing | undefined {
    const outgoing = this.outgoing.get(packetId);
    return outgoing?.isStored === true ? toStoredOutgoing(outgoing) : undefined;
  }

  /** The connection is gone. Returns the records that a durable session needs. */
  suspend(): PendingRecord[] {
    const { parts, isDurable, id } = this.#owner;
    const pending: PendingRecord[] = [];
    for (const outgoing of Array.from(this.outgoing.values())) {
      if (outgoing.isShared && outgoing.qos === 1) this.outgoing.delete(outgoing);
      else if (isDurable && !outgoing.isStored) {
        outgoing.isStored = true;
        pending.push(parts.records.outgoing(id, outgoing.id, toStoredOutgoing(outgoing)));
      }
    }
    this.outgoing.suspend();
    return pending;
  }

  /** The records that delete what is stored. */
  end(): PendingRecord[] {
    const { parts, id } = this.#owner;
    return Array.from(this.outgoing.values())
      .filter(({ isStored }) => isStored)
      .map((outgoing) => parts.records.outgoing(id, outgoing.id, null));
  }

  /** Sends a message with its QoS. `settle` is called when the client has it. */
  send(
    message: Message,
    view: View,
    isRetained: boolean,
    isShared: boolean,
    settle: () => void,
  ): void {
    const qos = Math.min(view.qos, qosOf(message)) as Qos;
    const retain = isRetained || (view.retainAsPublished && isPublishedRetained(message));
    if (qos === 0) {
      this.#publish(message, { qos, id: 0, retain, ids: view.ids }, false);
      settle();
      return;
    }
    const partition = isRetained
      ? this.#owner.parts.retained.partition
      : message.topic.stored.partitions[message.partition]!;
    const outgoing: Outgoing = {
      id: this.outgoing.nextId(),
      qos,
      phase: qos === 2 && this.#owner.isDurable ? "sending" : "publish",
      partition,
      offset: message.offset,
      retain,
      ids: view.ids,
      message,
      isStored: false,
      isSent: true,
      settle,
      isShared,
    };
    this.outgoing.add(outgoing);
    if (outgoing.phase === "sending") void this.#sendStored(outgoing, message);
    else if (!this.#publish(message, outgoing, false)) this.#finish(outgoing);
    else if (isShared && qos === 2) settle();
  }

  /** Restores a message in flight at startup. */
  restore(packetId: number, stored: StoredOutgoing, partition: PartitionView): void {
    const { phase, qos, offset, retain, ids } = stored;
    const place = `${stored.topicId}:${stored.partition}`;
    this.outgoing.add({
      id: packetId,
      qos,
      phase,
      partition,
      offset,
      retain,
      ids,
      message: undefined,
      isStored: true,
      isSent: false,
      settle: () => {
        if (partition !== this.#owner.parts.retained.partition) this.#owner.markDone(place, offset);
      },
      isShared: false,
    });
  }

  /**
   * Handles a PUBACK (of a message in the phase `publish` with QoS 1), a PUBREC that refuses a message (QoS 2), or a PUBCOMP
   * (phase `release`). Throws 0x82 for another message, and ignores unknown packet identifiers.
   */
  complete(packetId: number, qos: Qos, phase: "publish" | "release"): void {
    const outgoing = this.outgoing.get(packetId);
    if (outgoing === undefined || !outgoing.isSent) return;
    if (outgoing.qos !== qos || outgoing.phase !== phase) {
      throw new MqttError(REASON.protocolError, `packet ${packetId} has another acknowledgement`);
    }
    this.#finish(outgoing);
    this.#owner.pump();
  }

  /** Handles a PUBREC: the client has the message. The release is sent when that is durable. */
  async release(packetId: number): Promise<void> {
    const outgoing = this.outgoing.get(packetId);
    const { connection } = this.#owner;
    if (outgoing === undefined || outgoing.qos !== 2 || !outgoing.isSent) {
      connection?.sendRelease(packetId, REASON.packetIdNotFound);
      return;
    }
    if (outgoing.phase === "publish") {
      outgoing.phase = "release";
      outgoing.message = undefined;
      outgoing.settle();
      if (this.#owner.isDurable) await this.#store(this.#toPendingRelease(outgoing));
    }
    if (this.#owner.connection === connection) connection?.sendRelease(packetId, REASON.success);
  }

  /** Sends again what is in flight, in the order in which it was sent first. */
  async resend(connection: SessionConnection): Promise<void> {
    for (const outgoing of Array.from(this.outgoing.values())) {
      if (!(await this.#owner.waitForRoom(connection))) return;
      if (outgoing.phase === "release") {
        this.outgoing.markSent(outgoing);
        connection.sendRelease(outgoing.id, REASON.success);
        continue;
      }
      const message = await this.#loadWhenThere(connection, outgoing);
      if (this.#owner.connection !== connection) return;
      this.outgoing.markSent(outgoing);
      // Retention may have removed it. Its expiry no longer matters (MQTT-4.3.3-7).
      const isThere = message !== undefined;
      if (!isThere || !this.#publish(message, outgoing, true)) this.#finish(outgoing);
    }
  }

  #finish(outgoing: Outgoing): void {
    this.outgoing.delete(outgoing);
    if (outgoing.phase !== "release") outgoing.settle();
    if (outgoing.isStored) this.#owner.parts.saver.markOutgoing(this.#owner, outgoing.id);
  }

  /** The packet identifier is durable before the client sees it, so that it recognizes a repetition after a crash. */
  async #sendStored(outgoing: Outgoing, message: Message): Promise<void> {
    const { connection } = this.#owner;
    outgoing.isStored = true;
    const { records } = this.#owner.parts;
    const isSaved = await this.#store([
      records.outgoing(this.#owner.id, outgoing.id, toStoredOutgoing(outgoing)),
    ]);
    if (!isSaved || this.#owner.connection !== connection || outgoing.phase !== "sending") return;
    outgoing.phase = "publish";
    // A member of a group has the message for good once it is in flight (MQTT-4.8.2-5).
    if (outgoing.isShared) outgoing.settle();
    if (!this.#publish(message, outgoing, false)) this.#finish(outgoing);
  }

  #toPendingRelease(outgoing: Outgoing): PendingRecord[] {
    const { records } = this.#owner.parts;
    const pending = [records.outgoing(this.#owner.id, outgoing.id, toStoredOutgoing(outgoing))];
    outgoing.isStored = true;
    const place = `${outgoing.partition.topic.id.toString("hex")}:${outgoing.partition.index}`;
    const cursor = this.#owner.storedCursor(place);
    if (cursor !== undefined) pending.push(records.cursor(this.#owner.id, place, cursor));
    return pending;
  }

  async #store(pending: readonly PendingRecord[]): Promise<boolean> {
    const { connection } = this.#owner;
    try {
      await this.#owner.parts.store.append(pending);
      return true;
    } catch (error) {
      this.#owner.parts.onError(error);
      connection?.end(REASON.unspecified, "the state of the session could not be stored");
      return false;
    }
  }

  #publish(
    message: Message,
    { qos, id, retain, ids }: { qos: Qos; id: number; retain: boolean; ids: readonly number[] },
    isDuplicate: boolean,
  ): boolean {
    const { topic, payload } = message;
    const found = toProperties(message, this.#owner.parts.clock.now());
    const properties = ids.length === 0 ? found : { ...found, subscriptionIds: ids };
    const publish = {
      topic: toMqttTopic(topic),
      qos,
      id,
      retain,
      isDuplicate,
      properties,
      payload,
    };
    return this.#owner.connection!.sendPublish(topic, publish);
  }

  /** Waits for object storage while the connection lasts. */
  async #loadWhenThere(
    connection: SessionConnection,
    outgoing: Outgoing,
  ): Promise<Message | undefined> {
    for (;;) {
      try {
        return await this.#load(outgoing);
      } catch (error) {
        if (!isColdError(error) || this.#owner.connection !== connection) return undefined;
      }
      await sleep(COLD_RETRY_MS);
      if (this.#owner.connection !== connection) return undefined;
    }
  }

  async #load({ partition, offset }: Outgoing): Promise<Message | undefined> {
    const { retained, store, topics } = this.#owner.parts;
    try {
      if (partition === retained.partition) return await retained.read(offset);
      const topic = topics.ofPartition(partition);
      if (topic === undefined || offset < partition.logStart) return undefined;
      const { buffers } = await store.readIntact(partition, offset, 1);
      for (const batch of buffers.flatMap((buffer) => [...splitBatches(buffer)])) {
        const { records } = await decodeBatch(batch);
        const record = records.find((other) => other.offset === offset);
        if (record !== undefined) return toMessage(topic, partition.index, record);
      }
    } catch (error) {
      if (isColdError(error)) throw error;
      this.#owner.parts.onError(error);
    }
    return undefined;
  }
}
