// Parses subscription requests (SSE, WebSocket) and opens the subscription.
import { PlatformError } from "@platform/kernel/errors";
import type { Caller } from "@platform/kernel/identity";
import type { PartitionView } from "@platform/log";
import { accountOf } from "../dispatch/followed-topics.ts";
import type { MemberHandle } from "../dispatch/group-member.ts";
import type { SharedSubscription } from "../dispatch/shared-subscription.ts";
import type { SharedSubscriptions } from "../dispatch/shared-subscriptions.ts";
import {
  shortId,
  type Sink,
  type StartAt,
  type Subscription,
  type Subscriptions,
} from "../dispatch/subscription.ts";
import type { DeadLetterWriter } from "../deadletter/dead-letter-writer.ts";
import { isPattern } from "../topic/pattern.ts";
import type { Topic, Topics } from "../topic/topics.ts";
import { type Admission, tenantOf } from "./admission.ts";
import { toPrincipal } from "./subscribers.ts";

/** Default limit of unacknowledged messages of a member with manual acknowledgement. */
const PREFETCH_DEFAULT = 100;
const PREFETCH_MAX = 10_000;
const ACK_WAIT_MS_MIN = 100;
const ACK_WAIT_MS_MAX = 43_200_000;

/** A parsed subscription request. */
export interface SubscribeRequest {
  topic: string;
  group: string | undefined;
  isManual: boolean;
  prefetch: number;
  /** Acknowledgement timeout in ms; `undefined` for the broker's default. */
  ackWaitMs: number | undefined;
  startAt: StartAt;
}

/** An open subscription. */
export interface OpenSubscription {
  /** The topic or the pattern, as the client named it. */
  name: string;
  kind: "plain" | "group";
  subscription: Subscription | undefined;
  group: { group: SharedSubscription; member: MemberHandle } | undefined;
  /** False when the caller has lost the right for one of its topics. */
  isAllowed: () => boolean;
  pump: () => void;
  close: () => void;
}

/** Options of subscriptions. */
export interface SubscribeOptions {
  admission: Admission;
  topics: Topics;
  subscriptions: Subscriptions;
  groups: SharedSubscriptions;
  deadLetters: DeadLetterWriter;
  /** Default acknowledgement timeout, in ms. */
  ackWaitMs: number;
}

/** Parses path and query. `lastEventId` comes from the header, or from the query for clients that cannot set headers. */
export function readSubscribeRequest(
  topic: string,
  search: URLSearchParams,
  lastEventId: string | null,
): SubscribeRequest {
  const group = search.get("group") ?? undefined;
  if (group !== undefined && isPattern(topic)) {
    throw new PlatformError(
      "validation_failed",
      "A group subscribes to one topic, not to a pattern.",
    );
  }
  const ack = search.get("ack") ?? "auto";
  if (ack !== "auto" && ack !== "manual") {
    throw new PlatformError("validation_failed", "ack must be auto or manual.");
  }
  if (ack === "manual" && group === undefined) {
    throw new PlatformError("validation_failed", "ack=manual requires a group.");
  }
  const prefetch = readNumber(search, "prefetch", 1, PREFETCH_MAX) ?? PREFETCH_DEFAULT;
  const ackWaitMs = readNumber(search, "ack_wait_ms", ACK_WAIT_MS_MIN, ACK_WAIT_MS_MAX);
  if (ackWaitMs !== undefined && ack !== "manual") {
    throw new PlatformError("validation_failed", "ack_wait_ms requires ack=manual.");
  }
  const resumed = lastEventId ?? search.get("last_event_id");
  const startAt = resumed === null ? readFrom(search.get("from")) : readLastEventId(resumed);
  return { topic, group, isManual: ack === "manual", prefetch, ackWaitMs, startAt };
}

/**
 * Opens the subscription; creates the topic if needed. A pattern covers the topics that the caller may subscribe to. Throws
 * `too_many_requests` or `overloaded` if the topics are more than the user, the tenant or all may follow.
 */
export async function openSubscription(
  options: SubscribeOptions,
  caller: Caller,
  request: SubscribeRequest,
  sink: Sink,
): Promise<OpenSubscription> {
  const { topics, subscriptions, groups, deadLetters, admission } = options;
  const tenant = tenantOf(caller);
  const rights = admission.rightsOf(caller);
  const account = accountOf(subscriptions.followed, { ...toPrincipal(caller), tenant });
  if (isPattern(request.topic)) {
    const names = new Set<string>();
    const selects = (name: string): boolean => {
      if (!rights.covers("subscribe", name)) return false;
      if (deadLetters.isDeadLetterName(tenant, name)) return false;
      names.add(name);
      return true;
    };
    const asked = { tenant, pattern: request.topic, selects, account };
    const opened = await subscriptions.openPattern(asked, request.startAt, sink);
    return plain(request.topic, opened, () =>
      [...names].every((name) => rights.covers("subscribe", name)),
    );
  }
  const name = admission.allow(caller, "subscribe", request.topic);
  const isAllowed = (): boolean => rights.covers("subscribe", name);
  const topic = await topics.ensure(tenant, name);
  if (request.group === undefined)
    return plain(name, subscriptions.open(topic, request.startAt, sink, account), isAllowed);
  const group = await groups.ensure(tenant, request.group, topic, request.startAt);
  const { isManual, prefetch, ackWaitMs = options.ackWaitMs } = request;
  account.take(1);
  const member = group.join(sink, { isManual, prefetch, ackWaitMs });
  let isMember = true;
  return {
    name,
    kind: "group",
    subscription: undefined,
    group: { group, member },
    isAllowed,
    pump: () => group.pump(),
    close: () => {
      if (isMember) account.give(1);
      isMember = false;
      member.leave();
    },
  };
}

function plain(
  name: string,
  { subscription, close }: { subscription: Subscription; close: () => void },
  isAllowed: () => boolean,
): OpenSubscription {
  const pump = (): void => subscription.pump();
  return { name, kind: "plain", subscription, group: undefined, isAllowed, pump, close };
}

function readNumber(
  search: URLSearchParams,
  name: string,
  min: number,
  max: number,
): number | undefined {
  const text = search.get(name);
  if (text === null) return undefined;
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new PlatformError("validation_failed", `${name} must be an integer from ${min} to ${max}.`);
}

function readFrom(from: string | null): StartAt {
  if (from === null || from === "latest") return () => undefined;
  if (from === "earliest") return () => 0;
  if (/^\d{1,15}$/.test(from)) return () => Number(from);
  throw new PlatformError("validation_failed", "from must be earliest, latest or an offset.");
}

// Parses a position of `Subscription.positionAfter`. Partitions that it does not name were added later.
function readLastEventId(text: string): StartAt {
  const isOfPattern = text.startsWith("*");
  const form = isOfPattern ? /^([0-9a-f]{8}:\d{1,5}):(-1|\d{1,15})$/ : /^(\d{1,5}):(-1|\d{1,15})$/;
  const places = new Map<string, number>();
  for (const part of text.slice(isOfPattern ? 1 : 0).split(",")) {
    const found = form.exec(part.trim());
    if (found === null) {
      throw new PlatformError(
        "validation_failed",
        "Last-Event-ID is not a position of this broker.",
      );
    }
    places.set(found[1]!, Number(found[2]) + 1);
  }
  return (topic: Topic, { index }: PartitionView) =>
    places.get(isOfPattern ? `${shortId(topic)}:${index}` : String(index)) ?? 0;
}
