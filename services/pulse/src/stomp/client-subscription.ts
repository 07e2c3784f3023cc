// A subscription of a client: sends its messages, and keeps those that the client has not acknowledged.
import type { Outflow } from "@platform/kernel/sockets";
import type { MemberHandle } from "../dispatch/group-member.ts";
import { ReadAhead } from "../dispatch/read-ahead.ts";
import type { SharedSubscription } from "../dispatch/shared-subscription.ts";
import type { Sink } from "../dispatch/subscription.ts";
import { placeOf, type Message } from "../message/message.ts";
import { isPattern } from "../topic/pattern.ts";
import type { Rights } from "../topic/rights.ts";
import { encodeHeaders } from "./frame/frame.ts";
import type { StompVersion } from "./frame/version.ts";
import type { DeliveryForm, MessageEncoder } from "./message-form.ts";
import type { SubscribeRequest } from "./subscribe-request.ts";

/** The connection of a subscription's client. */
export interface SubscriberConnection {
  readonly version: StompVersion;
  readonly encoder: MessageEncoder;
  readonly outflow: Outflow | undefined;
  /** True if the client reads fast enough for more messages. When that becomes true again, it calls `pump`. */
  canSend(): boolean;
  /** Writes a frame; calls `onSent` when it was handed to the network. */
  send(frame: Buffer, onSent?: () => void): void;
  /** A number for `ack`, unique on the connection. */
  nextDelivery(): number;
  fail(reason: string): void;
}

/** A message that the client has not acknowledged. */
export interface HeldMessage {
  source: MessageSource;
  /** `partition:offset`. */
  place: string;
}

/** A group and the client's part in it; plain subscriptions that acknowledge have one for each topic. */
export interface MessageSource {
  group: SharedSubscription;
  member: MemberHandle;
}

/** The source of a subscription's messages. */
export interface Delivery {
  pump(): void;
  close(): void;
}

/** A subscription. `open` starts it. */
export class ClientSubscription {
  readonly request: SubscribeRequest;
  readonly #connection: SubscriberConnection;
  readonly #form: DeliveryForm;
  /** In order of delivery, by what the client acknowledges: `ack` in 1.2, the message's id before. */
  readonly #held = new Map<string, HeldMessage>();
  /** Names of the topics that it follows, or has followed. */
  readonly #topics = new Set<string>();
  #delivery: Delivery | undefined;
  #isStarted = false;
  #isClosed = false;

  constructor(request: SubscribeRequest, connection: SubscriberConnection) {
    this.request = request;
    this.#connection = connection;
    const { version } = connection;
    const { id, destination } = request;
    const subscriptionLine = id === undefined ? "" : encodeHeaders([["subscription", id]], version);
    this.#form = { version, prefix: destination.prefix, subscriptionLine };
  }

  get isManual(): boolean {
    return this.request.ackMode !== "auto";
  }

  /** Notes a topic that it follows. */
  noteTopic(name: string): void {
    this.#topics.add(name);
  }

  /** False if the client has lost the right for one of its topics. */
  isAllowed(rights: Rights): boolean {
    return this.#topics.values().every((name) => rights.covers("subscribe", name));
  }

  /**
   * Sets the source of messages; it is closed if the subscription was closed meanwhile. The first message follows the
   * receipt of the SUBSCRIBE frame.
   */
  begin(delivery: Delivery): void {
    if (this.#isClosed) delivery.close();
    else this.#delivery = delivery;
    setImmediate(() => {
      this.#isStarted = true;
      this.pump();
    });
  }

  /** A sink for plain subscriptions, and for groups with `ack:auto`. */
  createSink(): Sink {
    return {
      canSend: () => this.#isStarted && this.#connection.canSend(),
      readAhead: new ReadAhead(this.#connection.outflow),
      send: (message, done) => {
        this.#connection.send(this.#encode(message, message.id), done);
      },
      end: (reason) => this.end(reason),
    };
  }

  /** A sink for messages that the client acknowledges. Its `source` must be set before the first message. */
  createManualSink(): { sink: Sink; source: { current: MessageSource | undefined } } {
    const source: { current: MessageSource | undefined } = { current: undefined };
    const sink: Sink = {
      canSend: () =>
        !this.#isClosed &&
        this.#isStarted &&
        source.current !== undefined &&
        this.#mayHold() &&
        this.#connection.canSend(),
      readAhead: new ReadAhead(this.#connection.outflow),
      send: (message) => this.#sendHeld(message, source.current!),
      // A pattern outlives the topics that match it.
      end: (reason) => {
        if (!isPattern(this.request.destination.name)) this.end(reason);
      },
    };
    return { sink, source };
  }

  /** Sends waiting messages while the connection accepts them. */
  pump(): void {
    this.#delivery?.pump();
  }

  /** True if the client has not acknowledged the delivery. */
  holds(key: string): boolean {
    return this.#held.has(key);
  }

  /**
   * Removes and returns the messages that an ACK or NACK settles: the one, or with `ack:client` all up to it. Empty if it is
   * unknown.
   */
  settle(key: string): HeldMessage[] {
    const settled: HeldMessage[] = [];
    const one = this.#held.get(key);
    if (one === undefined) return settled;
    if (this.request.ackMode === "client-individual") {
      this.#held.delete(key);
      return [one];
    }
    for (const [other, held] of this.#held) {
      this.#held.delete(other);
      settled.push(held);
      if (other === key) break;
    }
    return settled;
  }

  /** Ends it, and the connection with it: STOMP cannot end a subscription of a client otherwise. */
  end(reason: string): void {
    const { prefix, name } = this.request.destination;
    this.#connection.fail(`the subscription to ${prefix}${name} has ended: ${reason}`);
  }

  /** Ends it; messages that were not acknowledged are delivered again, to others of the group. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#held.clear();
    this.#delivery?.close();
  }

  /** The bound holds over all topics of a pattern. */
  #mayHold(): boolean {
    if (this.#held.size < this.request.prefetch) return true;
    // Messages whose time ran out are delivered again, to whichever member: they are held there.
    for (const [key, { source, place }] of this.#held) {
      if (!source.group.isHeldBy(source.member, place)) this.#held.delete(key);
      else break;
    }
    return this.#held.size < this.request.prefetch;
  }

  #sendHeld(message: Message, source: MessageSource): void {
    const place = placeOf(message);
    const isNewest = this.#form.version === "1.2";
    const number = this.#connection.nextDelivery();
    let id = message.id;
    // Before 1.2 clients acknowledge by the id, which a message of another topic may have as well.
    if (!isNewest && this.#held.has(id)) id = `${id}~${number}`;
    const ack = isNewest ? String(number) : undefined;
    this.#held.set(ack ?? id, { source, place });
    this.#connection.send(this.#encode(message, id, ack));
  }

  #encode(message: Message, id: string, ack?: string): Buffer {
    return this.#connection.encoder.encode(message, this.#form, id, ack);
  }
}
