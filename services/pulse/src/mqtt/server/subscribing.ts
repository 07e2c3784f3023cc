// SUBSCRIBE and UNSUBSCRIBE, and the retained messages of new subscriptions.
import type { PendingRecord } from "../../store/store.ts";
import { fromLevelName } from "../../topic/level-name.ts";
import type { Rights } from "../../topic/rights.ts";
import { isFrom } from "../message-form.ts";
import type { SubscribePacket, SubscriptionRequest, UnsubscribePacket } from "../packet/packets.ts";
import { MqttError, REASON, type Reason } from "../packet/reason-codes.ts";
import { toMqttError } from "../publishing.ts";
import type { SessionConnection } from "../session/connection-port.ts";
import type { Session } from "../session/session.ts";
import { toView, type SessionSubscription } from "../session/topic-reader.ts";
import { parseFilter, type TopicFilter } from "../topic/filter.ts";

interface Outcome {
  code: number;
  detail?: string;
  /** Set if retained messages are to be sent. */
  retained?: SessionSubscription;
}

/** The codes of a SUBACK, its reason string, and the subscriptions whose retained messages are to be sent next. */
export interface SubscribeResult {
  codes: number[];
  detail: string | undefined;
  retained: SessionSubscription[];
}

/** The client that subscribes. */
export interface Subscriber {
  readonly rights: Rights;
  readonly isBridge: boolean;
}

/**
 * Subscribes; resolves when the subscriptions are durable. Throws an `MqttError` for what ends the connection.
 */
export async function subscribe(
  session: Session,
  subscriber: Subscriber,
  { requests, properties }: SubscribePacket,
): Promise<SubscribeResult> {
  const [id] = properties.subscriptionIds ?? [];
  for (const { filter, noLocal } of requests) {
    if (noLocal && filter.startsWith("$share/")) {
      throw new MqttError(REASON.protocolError, "no local with a shared subscription");
    }
  }
  const pending: PendingRecord[] = [];
  const outcomes: Outcome[] = [];
  for (const request of requests) {
    outcomes.push(await add(session, subscriber, request, id, pending));
  }
  await session.parts.store.append(pending);
  for (const [index, outcome] of outcomes.entries()) {
    const subscription = session.subscriptions.get(requests[index]!.filter);
    if (outcome.code > 2 || subscription?.filter.group === undefined) continue;
    outcomes[index] = await join(session, subscription, outcome);
  }
  return {
    codes: outcomes.map(({ code }) => code),
    detail: outcomes.find(({ detail }) => detail !== undefined)?.detail,
    retained: outcomes.flatMap((outcome) => outcome.retained ?? []),
  };
}

async function add(
  session: Session,
  { rights, isBridge }: Subscriber,
  request: SubscriptionRequest,
  id: number | undefined,
  pending: PendingRecord[],
): Promise<Outcome> {
  const { qos, retainHandling } = request;
  try {
    const filter = parseFilter(request.filter);
    checkRights(filter, rights);
    const known = session.subscriptions.get(filter.text);
    if (known === undefined && session.subscriptions.size >= session.parts.subscriptionsMax) {
      throw new MqttError(REASON.quotaExceeded, "the session has too many subscriptions");
    }
    // A message of a bridge that came back to it would go round for ever. A shared subscription cannot pass it over.
    const noLocal = request.noLocal || (isBridge && filter.group === undefined);
    const retainAsPublished = request.retainAsPublished || isBridge;
    const options = { qos, noLocal, retainAsPublished, ...(id === undefined ? {} : { id }) };
    const subscription = known ?? { session, filter, options };
    subscription.options = options;
    pending.push(...(await session.subscribe(subscription)));
    const isSent = retainHandling === 0 || (retainHandling === 1 && known === undefined);
    if (!isSent || filter.group !== undefined) return { code: qos };
    return { code: qos, retained: subscription };
  } catch (error) {
    const { reason, message } = toMqttError(error);
    return { code: reason, detail: message };
  }
}

/** A filter with wildcards covers the permitted topics. */
function checkRights({ levels, isWildcard }: TopicFilter, rights: Rights): void {
  const isAllowed = isWildcard
    ? rights.has("subscribe")
    : rights.covers("subscribe", fromLevelName(levels.join("/")));
  if (!isAllowed) {
    throw new MqttError(REASON.notAuthorized, "subscribing to this filter is not allowed");
  }
}

async function join(
  session: Session,
  subscription: SessionSubscription,
  outcome: Outcome,
): Promise<Outcome> {
  try {
    await session.memberships.join(subscription, false);
    return outcome;
  } catch (error) {
    const pending = session.unsubscribe(subscription.filter.text) ?? [];
    await session.parts.store.append(pending);
    const { reason, message } = toMqttError(error);
    return { code: reason, detail: message };
  }
}

/** Unsubscribes; resolves with the codes of the UNSUBACK when that is durable. */
export async function unsubscribe(
  session: Session,
  { filters }: UnsubscribePacket,
): Promise<number[]> {
  // Messages that were published before are delivered, also the client's own.
  for (const filter of filters) {
    const subscription = session.subscriptions.get(filter);
    if (subscription !== undefined) await session.readers.catchUp(subscription);
  }
  const pending: PendingRecord[] = [];
  const codes = filters.map((filter) => {
    const removed = session.unsubscribe(filter);
    if (removed === undefined) return explainUnknown(filter);
    pending.push(...removed);
    return REASON.success;
  });
  await session.parts.store.append(pending);
  return codes;
}

/** The code for a filter that the session has no subscription to (table 3-9). */
function explainUnknown(filter: string): Reason {
  try {
    parseFilter(filter);
    return REASON.noSubscriptionExisted;
  } catch (error) {
    return toMqttError(error).reason;
  }
}

/** Subscriptions of a connection that may wait for their retained messages. */
const WAITING_MAX = 10_000;

/** Sends the retained messages of new subscriptions of a connection, one subscription after the other. */
export class RetainedQueue {
  readonly #session: Session;
  readonly #connection: SessionConnection;
  readonly #waiting: SessionSubscription[] = [];
  #isSending = false;

  constructor(session: Session, connection: SessionConnection) {
    this.#session = session;
    this.#connection = connection;
  }

  /** Adds subscriptions; rejects if there are too many, or if reading fails. */
  async add(subscriptions: readonly SessionSubscription[]): Promise<void> {
    if (this.#waiting.length + subscriptions.length > WAITING_MAX) {
      throw new MqttError(
        REASON.quotaExceeded,
        "too many subscriptions wait for retained messages",
      );
    }
    this.#waiting.push(...subscriptions);
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
        await sendRetained(this.#session, this.#connection, next);
      }
    } finally {
      this.#isSending = false;
    }
  }
}

/** Sends the retained messages of a new subscription, as fast as the client takes them. */
async function sendRetained(
  session: Session,
  connection: SessionConnection,
  subscription: SessionSubscription,
): Promise<void> {
  const { retained, clock } = session.parts;
  const { filter, options } = subscription;
  for (const entry of retained.match(session.identity.tenant, filter.levels, clock.now())) {
    if (!connection.rights.covers("subscribe", entry.name)) continue;
    if (!(await session.waitForRoom(connection))) return;
    if (session.subscriptions.get(filter.text) !== subscription) return;
    const message = await retained.read(entry.offset);
    if (session.connection !== connection) return;
    if (message === undefined) continue;
    if (options.noLocal && isFrom(message, session.origin)) continue;
    session.deliveries.send(message, toView([subscription]), true, false, () => undefined);
  }
}
