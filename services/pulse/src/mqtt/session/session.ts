// The state of a client that may outlive its connection (section 4.1): subscriptions, positions, messages in flight.
import { createHash } from "node:crypto";
import type { FeedBatch } from "../../dispatch/feed.ts";
import { PriorityQueue } from "../../dispatch/priority-queue.ts";
import type { ReadAhead } from "../../dispatch/read-ahead.ts";
import { LOOKAHEAD_MAX, markGaps } from "../../dispatch/subscription.ts";
import type { Message } from "../../message/message.ts";
import type { StoredRanges } from "../../store/offset-ranges.ts";
import type { PendingRecord } from "../../store/store.ts";
import type { Topic } from "../../topic/topics.ts";
import { isFrom, ORIGIN_BYTES } from "../message-form.ts";
import type { SessionConnection } from "./connection-port.ts";
import { Deliveries } from "./deliveries.ts";
import type { SessionParts } from "./session-parts.ts";
import type { StoredOutgoing, StoredSession } from "./session-records.ts";
import { SharedMemberships } from "./shared-memberships.ts";
import type {
  PartitionReader,
  ReaderOwner,
  SessionSubscription,
  SubscriptionOwner,
  TopicReader,
} from "./topic-reader.ts";
import { TopicReaders } from "./topic-readers.ts";

const LOOKAHEAD_BYTES_MAX = 4 * 1024 * 1024;

/** Identity of a session: the client identifiers of different users are independent. */
export interface SessionIdentity {
  tenant: string;
  /** The user of the client. */
  owner: string;
  clientId: string;
}

/** Text that differs between any two identities. */
export function keyOf({ tenant, owner, clientId }: SessionIdentity): string {
  return JSON.stringify([tenant, owner, clientId]);
}

/** A session. Its messages stay in the log; it holds positions and what is being sent. */
export class Session implements ReaderOwner, SubscriptionOwner {
  readonly identity: SessionIdentity;
  /** Random, in hex. */
  readonly id: string;
  /** Marks the messages of the client: No Local is about client identifiers, also those of an ended session (MQTT-3.8.3-3). */
  readonly origin: Buffer;
  readonly parts: SessionParts;
  readonly subscriptions = new Map<string, SessionSubscription>();
  readonly deliveries = new Deliveries(this);
  /** QoS 2 messages by packet identifier that the client has not released; settled when the message is durable. */
  readonly incoming = new Map<number, Promise<void>>();
  readonly memberships: SharedMemberships;
  expirySeconds = 0;
  /** True if an earlier connection has left it. */
  isResumed = false;
  connection: SessionConnection | undefined;
  readonly readers: TopicReaders;
  readonly #queue = new PriorityQueue();
  readonly #resting = new Set<PartitionReader>();
  /** False until what is in flight was sent again to the current connection. */
  #isStarted = false;
  #waiting: (() => void)[] = [];

  constructor(identity: SessionIdentity, id: string, parts: SessionParts) {
    this.identity = identity;
    this.id = id;
    const digest = createHash("sha256").update(keyOf(identity)).digest();
    this.origin = digest.subarray(0, ORIGIN_BYTES);
    this.parts = parts;
    const account = parts.subscriptions.followed.account(identity.tenant, identity.owner);
    this.memberships = new SharedMemberships(this, account);
    this.readers = new TopicReaders(this, account);
  }

  /** True if the session outlives its connection. */
  get isDurable(): boolean {
    return this.expirySeconds > 0;
  }

  /** True if it has positions in topics: a session that was kept still has them on its last connection (section 4.1). */
  get hasPositions(): boolean {
    return this.isDurable || this.isResumed;
  }

  /** False if the client has lost the right for a topic that it follows. */
  get isAllowed(): boolean {
    const rights = this.connection?.rights;
    if (rights === undefined) return true;
    const covers = ({ name }: Topic): boolean => rights.covers("subscribe", name);
    return this.readers.topics.every(covers) && this.memberships.topics.every(covers);
  }

  toStored(disconnectedAt?: number): StoredSession {
    const { tenant, owner, clientId } = this.identity;
    const { expirySeconds } = this;
    const stored = { tenant, owner, clientId, expirySeconds };
    return disconnectedAt === undefined ? stored : { ...stored, disconnectedAt };
  }

  storedCursor(place: string): StoredRanges | undefined {
    return this.readers.storedCursor(place);
  }

  storedOutgoing(packetId: number): StoredOutgoing | undefined {
    return this.deliveries.stored(packetId);
  }

  /** Begins to serve a connection: sends again what is in flight, then follows the subscriptions. */
  async start(connection: SessionConnection): Promise<void> {
    this.connection = connection;
    await this.deliveries.resend(connection);
    if (this.connection !== connection) return;
    this.#isStarted = true;
    for (const subscription of this.subscriptions.values()) {
      if (subscription.filter.group !== undefined) {
        await this.memberships.join(subscription, true).catch(this.parts.onError);
        if (this.connection !== connection) return;
        continue;
      }
      const topics = this.parts.index.match(this.identity.tenant, subscription.filter);
      await this.#attach(topics, subscription, "cursor", connection);
      if (this.connection !== connection) return;
    }
    this.pump();
  }

  /** Stops: the connection is gone. Returns the records that a durable session needs. */
  suspend(): PendingRecord[] {
    this.connection = undefined;
    this.#isStarted = false;
    this.memberships.leaveAll();
    this.#queue.clear();
    this.#resting.clear();
    this.readers.suspend();
    const pending = this.deliveries.suspend();
    this.#wake();
    return pending;
  }

  /**
   * Adds or changes a subscription. The resolved records must be durable before the client is told. Rejects with
   * `too_many_requests` or `overloaded` if it matches more topics than may be followed.
   */
  async subscribe(subscription: SessionSubscription): Promise<PendingRecord[]> {
    const { filter, options } = subscription;
    const { index, records } = this.parts;
    const { tenant } = this.identity;
    const { connection } = this;
    const topics = index.match(tenant, filter);
    const isShared = filter.group !== undefined;
    const known = (topic: Topic): boolean => this.readers.isFollowed(topic, subscription);
    const more = isShared ? topics.length : topics.filter((topic) => !known(topic)).length;
    const error = this.readers.account.explain(more);
    if (error !== undefined && more > 0) throw error;
    if (!this.subscriptions.has(filter.text)) {
      this.subscriptions.set(filter.text, subscription);
      index.add(tenant, subscription);
    }
    const pending = this.isDurable ? [records.subscription(this.id, filter.text, options)] : [];
    if (isShared) return pending;
    if (this.isDurable && options.qos > 0) {
      for (const topic of topics) pending.push(...this.readers.keepPositions(topic));
    }
    if (connection !== undefined) await this.#attach(topics, subscription, "end", connection);
    return pending;
  }

  /** Removes a subscription; undefined if there is none. Messages in flight are still delivered (MQTT-3.10.4-4). */
  unsubscribe(text: string): PendingRecord[] | undefined {
    const subscription = this.subscriptions.get(text);
    if (subscription === undefined) return undefined;
    this.subscriptions.delete(text);
    const { index, records } = this.parts;
    index.remove(this.identity.tenant, subscription);
    this.memberships.leave(subscription);
    const pending: PendingRecord[] = [];
    if (this.isDurable) pending.push(records.subscription(this.id, text, null));
    const topics = index.match(this.identity.tenant, subscription.filter);
    pending.push(...this.readers.drop(subscription, topics));
    return pending;
  }

  /** Releases everything: the session has ended. Returns the records that delete it. */
  end(): PendingRecord[] {
    const { index, records, saver } = this.parts;
    saver.forget(this);
    const { id } = this;
    const pending = [records.session(id, null)];
    for (const subscription of this.subscriptions.values()) {
      index.remove(this.identity.tenant, subscription);
      pending.push(records.subscription(id, subscription.filter.text, null));
    }
    for (const place of this.readers.cursors.keys()) pending.push(records.cursor(id, place, null));
    for (const packetId of this.incoming.keys())
      pending.push(records.incoming(id, packetId, false));
    pending.push(...this.deliveries.end());
    this.subscriptions.clear();
    return pending;
  }

  noteTopic(topic: Topic, subscription: SessionSubscription): void {
    if (!this.#isStarted) return;
    if (subscription.filter.group === undefined) this.readers.attach(topic, subscription, "start");
    else this.memberships.noteTopic(topic, subscription);
  }

  hasRoom(): boolean {
    return this.#queue.count < LOOKAHEAD_MAX && this.#queue.bytes < LOOKAHEAD_BYTES_MAX;
  }

  canTake(): boolean {
    return this.#queue.count === 0 && this.canDeliver();
  }

  /** True if a message of any QoS can be sent now. */
  canDeliver(): boolean {
    const { connection, deliveries } = this;
    if (connection === undefined || !this.#isStarted) return false;
    return connection.canSend() && deliveries.hasQuota(connection);
  }

  readAhead(): ReadAhead {
    return this.connection!.readAhead;
  }

  rest(place: PartitionReader): void {
    this.#resting.add(place);
  }

  forget(place: PartitionReader): void {
    this.#resting.delete(place);
  }

  markDone(place: string, offset: number): void {
    this.readers.markDone(place, offset);
  }

  lose(topic: Topic): void {
    const reader = this.readers.find(topic);
    if (reader !== undefined) this.readers.detach(reader);
  }

  take(place: PartitionReader, batch: FeedBatch): void {
    const { reader, done } = place;
    if (done !== undefined) markGaps(done, batch.from, batch.to, batch.messages);
    if (done === undefined && this.#sendWhole(reader, batch)) {
      this.parts.backlog.noteConsumed(reader.topic, place.partition.index, batch.to);
      return;
    }
    for (const message of batch.messages) this.#queue.push(message);
    this.pump();
  }

  /** Sends waiting messages while the client takes them. */
  pump(): void {
    this.#wake();
    while (this.#queue.count > 0 && this.canDeliver()) {
      const message = this.#queue.shift()!;
      const reader = this.readers.find(message.topic);
      if (reader !== undefined) this.#deliver(reader, message);
    }
    this.connection?.readAhead.countQueued(this.#queue.bytes);
    if (this.#queue.count === 0 && this.canDeliver()) this.memberships.pump();
    if (this.#resting.size === 0 || !this.hasRoom()) return;
    const resting = [...this.#resting];
    this.#resting.clear();
    for (const place of resting) place.resume(this.parts.feeds);
  }

  /** Resolves when a message can be sent; false if the connection is gone. */
  async waitForRoom(connection: SessionConnection): Promise<boolean> {
    while (this.connection === connection) {
      if (connection.canSend() && this.deliveries.hasQuota(connection)) return true;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    return false;
  }

  /** Reads topics for a subscription, in turns with other long work, while the connection lasts. */
  #attach(
    topics: readonly Topic[],
    subscription: SessionSubscription,
    start: "cursor" | "end",
    connection: SessionConnection,
  ): Promise<void> {
    const { filter } = subscription;
    return this.parts.subscriptions.turns.forEach(topics, (topic) => {
      const isCurrent = this.subscriptions.get(filter.text) === subscription;
      if (!isCurrent || this.connection !== connection || !topic.stored.live) return;
      this.readers.attach(topic, subscription, start);
    });
  }

  #wake(): void {
    if (this.#waiting.length === 0) return;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  #sendWhole({ topic, view, ownView }: TopicReader, batch: FeedBatch): boolean {
    if (view.qos > 0 || ownView !== view || !this.canTake()) return false;
    return this.connection!.sendBatch(topic, batch, view);
  }

  #deliver(reader: TopicReader, message: Message): void {
    const place = reader.partitions[message.partition];
    const { offset, expiresAt } = message;
    if (place === undefined || place.done?.has(offset) === true) return;
    if (place.skipped?.delete(offset) === true) return;
    const view = isFrom(message, this.origin) ? reader.ownView : reader.view;
    const isExpired = expiresAt !== undefined && expiresAt <= this.parts.clock.now();
    if (view === undefined || isExpired) {
      this.readers.settle(place, offset);
      return;
    }
    this.parts.backlog.noteConsumed(message.topic, message.partition, offset + 1);
    this.deliveries.send(message, view, false, false, () => this.readers.settle(place, offset));
  }
}
