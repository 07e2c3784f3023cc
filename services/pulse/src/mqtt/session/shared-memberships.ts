// Shared subscriptions of a session (section 4.8.2): memberships in the groups of dispatch.
import type { FollowAccount } from "../../dispatch/followed-topics.ts";
import type { MemberHandle } from "../../dispatch/group-member.ts";
import type { ReadAhead } from "../../dispatch/read-ahead.ts";
import type { SharedSubscription } from "../../dispatch/shared-subscription.ts";
import type { SharedSubscriptions } from "../../dispatch/shared-subscriptions.ts";
import type { Sink } from "../../dispatch/subscription.ts";
import type { Message } from "../../message/message.ts";
import type { Topic } from "../../topic/topics.ts";
import type { SessionConnection } from "./connection-port.ts";
import type { Deliveries } from "./deliveries.ts";
import type { TopicIndex } from "./topic-index.ts";
import { toView, type SessionSubscription } from "./topic-reader.ts";

/** Groups that are joined at the same time. */
const JOINS_AT_ONCE = 64;

/** The session that a membership belongs to. */
export interface MembershipOwner {
  readonly identity: { tenant: string };
  readonly parts: {
    index: TopicIndex;
    groups: SharedSubscriptions;
    ackWaitMs: number;
    onError: (error: unknown) => void;
  };
  readonly connection: SessionConnection | undefined;
  readonly deliveries: Deliveries;
  canDeliver(): boolean;
}

interface Membership {
  subscription: SessionSubscription;
  group: SharedSubscription;
  handle: MemberHandle;
}

/** The memberships of a session: one for each matching topic of a shared subscription. */
export class SharedMemberships {
  readonly #owner: MembershipOwner;
  readonly #account: FollowAccount;
  #all: Membership[] = [];
  #isPumping = false;

  constructor(owner: MembershipOwner, account: FollowAccount) {
    this.#owner = owner;
    this.#account = account;
  }

  /** The topics whose groups it has joined. */
  get topics(): Topic[] {
    return this.#all.map(({ group }) => group.topic);
  }

  /**
   * Joins the groups of all topics that match. New groups begin at the end of a topic, or with `isBack` at its start: the
   * topic was created while the client was away. Rejects with the errors of `SharedSubscriptions.ensure`, and if more topics
   * match than may be followed.
   */
  async join(subscription: SessionSubscription, isBack: boolean): Promise<void> {
    const { tenant } = this.#owner.identity;
    const topics = this.#owner.parts.index.match(tenant, subscription.filter);
    for (let at = 0; at < topics.length; at += JOINS_AT_ONCE) {
      const some = topics.slice(at, at + JOINS_AT_ONCE);
      await Promise.all(some.map((topic) => this.#join(topic, subscription, isBack)));
    }
  }

  /** Joins the group of a topic that was created. */
  noteTopic(topic: Topic, subscription: SessionSubscription): void {
    this.#join(topic, subscription, true).catch(this.#owner.parts.onError);
  }

  leave(subscription: SessionSubscription): void {
    const left = this.#all.filter((membership) => membership.subscription === subscription);
    if (left.length === 0) return;
    this.#all = this.#all.filter((membership) => membership.subscription !== subscription);
    this.#account.give(left.length);
    for (const { handle } of left) handle.leave();
  }

  leaveAll(): void {
    this.#account.give(this.#all.length);
    for (const { handle } of this.#all.splice(0)) handle.leave();
  }

  /** Takes waiting messages of the groups. */
  pump(): void {
    if (this.#all.length === 0 || this.#isPumping) return;
    this.#isPumping = true;
    for (const { group } of this.#all) group.pump();
    this.#isPumping = false;
  }

  async #join(topic: Topic, subscription: SessionSubscription, isBack: boolean): Promise<void> {
    const { connection, parts, identity } = this.#owner;
    if (connection?.rights.covers("subscribe", topic.name) !== true) return;
    const name = subscription.filter.group!;
    const group = await parts.groups.ensure(identity.tenant, name, topic, () =>
      isBack ? 0 : undefined,
    );
    const isKnown = this.#all.some(
      (other) => other.subscription === subscription && other.group === group,
    );
    if (isKnown || this.#owner.connection !== connection) return;
    // The topic rules may have changed meanwhile.
    if (!connection.rights.covers("subscribe", topic.name)) return;
    this.#account.take(1);
    const member = new GroupSink(this.#owner, group, subscription, connection.readAhead);
    const handle = group.join(member, {
      isManual: true,
      prefetch: connection.receiveMaximum,
      ackWaitMs: parts.ackWaitMs,
    });
    member.handle = handle;
    this.#all.push({ subscription, group, handle });
    group.pump();
  }
}

class GroupSink implements Sink {
  readonly readAhead: ReadAhead;
  handle: MemberHandle | undefined;
  readonly #owner: MembershipOwner;
  readonly #group: SharedSubscription;
  readonly #subscription: SessionSubscription;

  constructor(
    owner: MembershipOwner,
    group: SharedSubscription,
    subscription: SessionSubscription,
    readAhead: ReadAhead,
  ) {
    this.#owner = owner;
    this.#group = group;
    this.#subscription = subscription;
    this.readAhead = readAhead;
  }

  canSend(): boolean {
    return this.handle !== undefined && this.#owner.canDeliver();
  }

  send(message: Message): void {
    const view = toView([this.#subscription]);
    this.#owner.deliveries.send(message, view, false, true, () => {
      this.#group.acknowledge(`${message.partition}:${message.offset}`, this.handle);
    });
  }

  /** The topic was deleted: other topics of the filter stay. */
  end(): void {
    this.handle?.leave();
  }
}
