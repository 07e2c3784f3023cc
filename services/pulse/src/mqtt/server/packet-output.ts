// The packets sent to a client: written once a turn, in the form and the bounds that the client asks for.
import type { Transport } from "../../connection/transport.ts";
import type { FeedBatch } from "../../dispatch/feed.ts";
import type { Topic } from "../../topic/topics.ts";
import { encodeBatch, type UsedAlias } from "../fan-out.ts";
import { encodeAcknowledgement, encodePublish, type OutgoingPublish } from "../packet/encode.ts";
import type { Version } from "../packet/packets.ts";
import type { Properties } from "../packet/properties.ts";
import type { Reason } from "../packet/reason-codes.ts";
import type { DeliveryForm } from "../session/connection-port.ts";
import type { ConnectionContext, MqttLimits } from "./connection-context.ts";

/** Unsent bytes at which no more is sent to the client, and nothing more is read from it. */
const UNSENT_BYTES_MAX = 256 * 1024;

/** Writes packets to a transport. */
export class PacketOutput {
  readonly transport: Transport;
  version: Version = 5;
  receiveMaximum = 65_535;
  isClosed = false;
  /** True if the transport has closed: nothing is written any more. */
  isGone = false;
  readonly #output: ConnectionContext;
  #out: Buffer[] = [];
  #outBytes = 0;
  #packetBytesMax = Number.POSITIVE_INFINITY;
  #wantsReasons = true;
  #aliasMaximum = 0;
  #aliases: Map<Topic, number> | undefined;

  constructor(transport: Transport, context: ConnectionContext) {
    this.transport = transport;
    this.#output = context;
  }

  /** Applies what the client's CONNECT asks for. */
  applyProperties(properties: Properties, limits: MqttLimits): void {
    const { receiveMaximum = 65_535, maximumPacketBytes, topicAliasMaximum = 0 } = properties;
    this.receiveMaximum = Math.min(receiveMaximum, limits.receiveMaximum);
    this.#packetBytesMax = maximumPacketBytes ?? Number.POSITIVE_INFINITY;
    this.#aliasMaximum = Math.min(topicAliasMaximum, limits.topicAliasMaximum);
    this.#wantsReasons = properties.requestProblemInformation !== 0;
  }

  canSend(): boolean {
    return !this.isGone && this.#outBytes + this.transport.unsentBytes < UNSENT_BYTES_MAX;
  }

  sendPublish(topic: Topic, publish: OutgoingPublish): boolean {
    const used = this.#aliasMaximum === 0 ? undefined : this.#useAlias(topic);
    const packet = encodePublish(
      this.version,
      used === undefined ? publish : withAlias(publish, used),
    );
    if (packet.length > this.#packetBytesMax) return false;
    if (used?.isNew === true) this.#aliases!.set(topic, used.alias);
    this.write(packet);
    return true;
  }

  sendBatch(topic: Topic, batch: FeedBatch, form: DeliveryForm): boolean {
    const used = this.#aliasMaximum === 0 ? undefined : this.#useAlias(topic);
    const now = this.#output.clock.now();
    const encoded = encodeBatch(topic, batch, this.version, form, used, now);
    if (encoded.packetBytesMax > this.#packetBytesMax) return false;
    if (encoded.count === 0) return true;
    if (used?.isNew === true) this.#aliases!.set(topic, used.alias);
    this.write(encoded.bytes);
    return true;
  }

  sendRelease(packetId: number, reason: Reason): void {
    this.write(encodeAcknowledgement(this.version, "pubrel", packetId, reason));
  }

  acknowledge(type: "puback" | "pubrec", id: number, reason: Reason, detail?: string): void {
    this.writeExplained(
      (given) => encodeAcknowledgement(this.version, type, id, reason, given),
      detail,
    );
  }

  /** Writes a packet at the end of the turn. */
  write(packet: Buffer): void {
    if (this.isClosed || this.isGone) return;
    if (this.#out.length === 0) this.#output.flushes.add(this);
    this.#out.push(packet);
    this.#outBytes += packet.length;
  }

  flush(): void {
    const out = this.#out;
    if (out.length === 0) return;
    this.#out = [];
    this.#outBytes = 0;
    if (this.isGone) return;
    this.transport.write(out);
    this.transport.outflow?.settle();
  }

  #useAlias(topic: Topic): UsedAlias | undefined {
    const aliases = (this.#aliases ??= new Map());
    const known = aliases.get(topic);
    if (known !== undefined) return { alias: known, isNew: false };
    return aliases.size < this.#aliasMaximum ? { alias: aliases.size + 1, isNew: true } : undefined;
  }

  /** Writes a packet with a reason string, or without it if it is too long for the client (MQTT-3.2.2-19). */
  writeExplained(encode: (given: Properties) => Buffer, detail: string | undefined): void {
    const isExplained = detail !== undefined && this.#wantsReasons;
    const packet = encode(isExplained ? { reasonString: detail } : {});
    this.write(packet.length > this.#packetBytesMax ? encode({}) : packet);
  }

  /** The reason string of a CONNACK or DISCONNECT, unless it is too long for the client. */
  explainEnd(detail: string): Properties {
    return detail.length + 16 > this.#packetBytesMax ? {} : { reasonString: detail };
  }
}

function withAlias(publish: OutgoingPublish, { alias, isNew }: UsedAlias): OutgoingPublish {
  return {
    ...publish,
    topic: isNew ? publish.topic : "",
    properties: { ...publish.properties, topicAlias: alias },
  };
}
