// The messages that a client publishes: topic aliases, flow control, acknowledgements in order, exactly-once delivery.
import type { PublishPacket, Version } from "../packet/packets.ts";
import { encodeAcknowledgement } from "../packet/encode.ts";
import { MqttError, REASON, type Reason } from "../packet/reason-codes.ts";
import { toMqttError, type MessageSource } from "../publishing.ts";
import type { Session } from "../session/session.ts";
import { readDestination, type Destination } from "../topic/filter.ts";
import type { ConnectionContext } from "./connection-context.ts";

/** Messages of a connection that are being stored at which reading pauses. */
const IN_FLIGHT_MAX = 1_000;
/** Bytes of messages of a connection that are being stored at which reading pauses. */
const IN_FLIGHT_BYTES_MAX = 1024 * 1024;
/** Unreleased messages of an MQTT 3.1.1 client, which is told no receive maximum. */
const UNRELEASED_MAX = 20_000;
/** Pause from which messages are refused instead of delayed: the longest that a quota imposes. */
const PAUSE_MS_MAX = 10_000;

/** The connection of the publishing client. */
export interface PublishingConnection {
  readonly version: Version;
  readonly session: Session;
  readonly source: MessageSource;
  /** Writes an acknowledgement, with a reason string if the client wants one. */
  acknowledge(type: "puback" | "pubrec", id: number, reason: Reason, detail?: string): void;
  write(packet: Buffer): void;
  /** Continues to read when there was too much to do. */
  resumeReading(): void;
  fail(error: unknown): void;
}

interface PendingAcknowledgement {
  type: "puback" | "pubrec";
  id: number;
  /** Set when the message is durable or refused. */
  outcome: { reason: Reason; detail?: string } | undefined;
}

/** The incoming messages of one connection. */
export class IncomingPublishes {
  readonly #connection: PublishingConnection;
  readonly #context: ConnectionContext;
  /** In order of the messages (MQTT-4.6.0-2, MQTT-4.6.0-3). */
  readonly #acknowledgements: PendingAcknowledgement[] = [];
  #aliases: (Destination | undefined)[] | undefined;
  #inFlight = 0;
  #inFlightBytes = 0;
  /** Messages with QoS 1 and 2 that count against the receive maximum. */
  #unacknowledged = 0;
  #mutedUntilMs = 0;
  /** Messages without an outcome, and who waits for the last one. */
  #unsettled = 0;
  #onSettled: (() => void)[] = [];
  readonly #wake = (): void => this.#connection.resumeReading();

  constructor(connection: PublishingConnection, context: ConnectionContext) {
    this.#connection = connection;
    this.#context = context;
  }

  /** True while no further packets may be read; `resumeReading` follows. */
  get isFull(): boolean {
    if (this.#inFlight >= IN_FLIGHT_MAX || this.#inFlightBytes >= IN_FLIGHT_BYTES_MAX) return true;
    if (this.#mutedUntilMs > 0) return true;
    const { publishing } = this.#context;
    if (!publishing.isFull || this.#inFlight > 0) return false;
    publishing.whenRoom(this.#wake);
    return true;
  }

  /** Resolves when all messages that have arrived are stored or refused, and acknowledged. */
  settled(): Promise<void> {
    if (this.#unsettled === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onSettled.push(resolve));
  }

  /** True if a message with this packet identifier has arrived that is not acknowledged yet. */
  isUnsettled(id: number): boolean {
    return this.#unsettled > 0 && this.#acknowledgements.some((pending) => pending.id === id);
  }

  /** Handles a PUBLISH. Throws an `MqttError` that ends the connection. */
  handle(packet: PublishPacket): void {
    const { qos, id } = packet;
    const destination = this.#readDestination(packet);
    if (qos > 0) this.#countUnacknowledged();
    const pending = qos === 0 ? undefined : this.#expectAcknowledgement(qos, id);
    const earlier = qos === 2 ? this.#connection.session.incoming.get(id) : undefined;
    if (earlier !== undefined) {
      // Sent again by a client that has not seen the PUBREC; it counts once.
      this.#unacknowledged--;
      this.#settleLater(earlier, pending, packet);
      return;
    }
    const bytes = packet.payload.length + packet.topic.length;
    this.#inFlight++;
    this.#inFlightBytes += bytes;
    this.#context.publishing.add(bytes);
    const published = this.#publish(destination, packet).finally(() => {
      this.#inFlight--;
      this.#inFlightBytes -= bytes;
      this.#context.publishing.remove(bytes);
    });
    if (qos === 2) {
      published.catch(() => undefined);
      this.#connection.session.incoming.set(id, published);
    }
    this.#settleLater(published, pending, packet);
  }

  /** Handles a PUBREL: the client knows that the message is stored, so its identifier is free again. */
  async release(id: number): Promise<void> {
    const { session, version } = this.#connection;
    const isKnown = session.incoming.has(id);
    if (isKnown) {
      session.incoming.delete(id);
      this.#unacknowledged = Math.max(0, this.#unacknowledged - 1);
    }
    if (isKnown && session.isDurable) {
      const { records } = session.parts;
      await this.#context.store.append([records.incoming(session.id, id, false)]);
    }
    // An unknown identifier is a repetition after a broken connection: clients take 0x92 for an error of the message.
    this.#connection.write(encodeAcknowledgement(version, "pubcomp", id, REASON.success));
  }

  #readDestination({ topic, properties }: PublishPacket): Destination {
    const { topicAlias, responseTopic } = properties;
    const { version } = this.#connection;
    if (responseTopic !== undefined && (responseTopic === "" || /[+#]/.test(responseTopic))) {
      throw new MqttError(REASON.protocolError, "the response topic is not a topic name");
    }
    if (topicAlias === undefined) {
      if (topic === "") throw new MqttError(REASON.protocolError, "a PUBLISH without a topic");
      return readDestination(topic, version);
    }
    if (topicAlias > this.#context.limits.topicAliasMaximum) {
      throw new MqttError(REASON.invalidTopicAlias, "the topic alias is above the maximum");
    }
    if (topic !== "") {
      const destination = readDestination(topic, version);
      (this.#aliases ??= [])[topicAlias] = destination;
      return destination;
    }
    const destination = this.#aliases?.[topicAlias];
    if (destination !== undefined) return destination;
    throw new MqttError(REASON.protocolError, "an unknown topic alias");
  }

  #countUnacknowledged(): void {
    const { version, session } = this.#connection;
    const limit = version === 5 ? this.#context.limits.receiveMaximum : UNRELEASED_MAX;
    if (++this.#unacknowledged <= limit && session.incoming.size <= UNRELEASED_MAX) return;
    throw new MqttError(
      REASON.receiveMaximumExceeded,
      `more than ${limit} messages are not acknowledged`,
    );
  }

  #expectAcknowledgement(qos: 1 | 2, id: number): PendingAcknowledgement {
    const type = qos === 1 ? "puback" : "pubrec";
    const pending: PendingAcknowledgement = { type, id, outcome: undefined };
    this.#acknowledgements.push(pending);
    return pending;
  }

  async #publish(destination: Destination, packet: PublishPacket): Promise<void> {
    const { session, source } = this.#connection;
    const { qos, id } = packet;
    const pauseMs = this.#charge(source.tenant, packet);
    if (pauseMs >= PAUSE_MS_MAX) {
      throw new MqttError(REASON.quotaExceeded, "the tenant publishes more than its quota");
    }
    if (destination.kind === "refused") throw destination.error;
    if (destination.kind === "dropped") {
      this.#context.publisher.counts.dropped++;
      return;
    }
    const isStored = qos === 2 && session.isDurable;
    const also = isStored ? [session.parts.records.incoming(session.id, id, true)] : [];
    await this.#context.publisher.publish(source, destination.name, packet, also);
  }

  #charge(tenant: string, { payload, topic }: PublishPacket): number {
    const { quota, clock } = this.#context;
    const pauseMs = quota.charge(tenant, payload.length + topic.length);
    if (pauseMs === 0) return 0;
    const isMuted = this.#mutedUntilMs > 0;
    this.#mutedUntilMs = clock.monotonicMs() + pauseMs;
    if (!isMuted) this.#unmuteAfter(pauseMs);
    return pauseMs;
  }

  // Timers may be early, and the pause may have been extended.
  #unmuteAfter(pauseMs: number): void {
    setTimeout(() => {
      const leftMs = this.#mutedUntilMs - this.#context.clock.monotonicMs();
      if (leftMs > 0) {
        this.#unmuteAfter(Math.ceil(leftMs));
        return;
      }
      this.#mutedUntilMs = 0;
      this.#wake();
    }, pauseMs).unref();
  }

  #settleLater(
    published: Promise<void>,
    pending: PendingAcknowledgement | undefined,
    packet: PublishPacket,
  ): void {
    this.#unsettled++;
    published.then(
      () => {
        if (pending !== undefined) this.#settle(pending, { reason: REASON.success });
        this.#noteSettled();
      },
      (error: unknown) => {
        this.#refuse(toMqttError(error), pending, packet);
        this.#noteSettled();
      },
    );
  }

  #noteSettled(): void {
    if (--this.#unsettled === 0) for (const resolve of this.#onSettled.splice(0)) resolve();
    this.#connection.resumeReading();
  }

  #refuse(
    error: MqttError,
    pending: PendingAcknowledgement | undefined,
    { qos, id }: PublishPacket,
  ): void {
    if (qos === 2) this.#connection.session.incoming.delete(id);
    if (pending === undefined) {
      this.#context.publisher.counts.dropped++;
      return;
    }
    // MQTT 3.1.1 can only say that a message was accepted (MQTT-3.3.5-2).
    if (this.#connection.version === 4) this.#connection.fail(error);
    else this.#settle(pending, { reason: error.reason, detail: error.message });
  }

  #settle(pending: PendingAcknowledgement, outcome: { reason: Reason; detail?: string }): void {
    pending.outcome = outcome;
    const queue = this.#acknowledgements;
    while (queue[0]?.outcome !== undefined) {
      const { type, id, outcome: own } = queue.shift()!;
      const { reason, detail } = own!;
      if (type === "puback" || reason >= 0x80) this.#unacknowledged--;
      this.#connection.acknowledge(type, id, reason, detail);
    }
  }
}
