// The last tries of each subscription, for people who look for an event that did not arrive. In memory, since the start.
import type { ObjectEventName, PendingEvent } from "../model/event.ts";

/** One attempt to deliver an event. */
export interface Try {
  /** Its end, in ms since 1970. */
  readonly endedMs: number;
  readonly durationMs: number;
  readonly name: ObjectEventName;
  readonly key: string;
  /** 1 is the first attempt of the event. */
  readonly attempt: number;
  /** Of an HTTP answer. */
  readonly status?: number;
  /** The planned time of the next attempt, in ms since 1970, after a failure. */
  readonly nextMs?: number;
  readonly outcome: "delivered" | "failed" | "abandoned";
  /** Without the address of the target; undefined if it was delivered. */
  readonly reason?: string;
}

/** Outcomes of a subscription since the start. */
export interface SubscriptionTries {
  readonly delivered: number;
  readonly failed: number;
  readonly abandoned: number;
  /** The newest first, at most 20. */
  readonly tries: readonly Try[];
}

const TRIES_MAX = 20;
/** The one whose last try is the longest ago is forgotten first. */
const SUBSCRIPTIONS_MAX = 1_000;
const REASON_CHARS_MAX = 500;
const NONE: SubscriptionTries = { delivered: 0, failed: 0, abandoned: 0, tries: [] };

export class TryLog {
  readonly #subscriptions = new Map<string, SubscriptionTries>();

  /** Adds a try of an event. */
  add({ bucket, ruleId, name, key }: PendingEvent, done: Omit<Try, "name" | "key">): void {
    const id = identify(bucket, ruleId);
    const before = this.#subscriptions.get(id) ?? NONE;
    const { outcome, reason } = done;
    const added: Try = {
      ...done,
      name,
      key,
      ...(reason === undefined ? {} : { reason: reason.slice(0, REASON_CHARS_MAX) }),
    };
    this.#subscriptions.delete(id);
    this.#subscriptions.set(id, {
      ...before,
      [outcome]: before[outcome] + 1,
      tries: [added, ...before.tries.slice(0, TRIES_MAX - 1)],
    });
    if (this.#subscriptions.size <= SUBSCRIPTIONS_MAX) return;
    for (const oldest of this.#subscriptions.keys()) {
      this.#subscriptions.delete(oldest);
      return;
    }
  }

  /** The tries of a subscription; empty if there was none. */
  read(bucket: string, ruleId: string): SubscriptionTries {
    return this.#subscriptions.get(identify(bucket, ruleId)) ?? NONE;
  }
}

function identify(bucket: string, ruleId: string): string {
  return `${bucket}\0${ruleId}`;
}
