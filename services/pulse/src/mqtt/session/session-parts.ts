// The parts of the broker that sessions use.
import type { Clock } from "@platform/kernel/time";
import type { DeadLetterWriter } from "../../deadletter/dead-letter-writer.ts";
import type { Backlog } from "../../dispatch/backlog.ts";
import type { Feeds } from "../../dispatch/feed.ts";
import type { SharedSubscriptions } from "../../dispatch/shared-subscriptions.ts";
import type { Subscriptions } from "../../dispatch/subscription.ts";
import type { Store } from "../../store/store.ts";
import type { Topics } from "../../topic/topics.ts";
import type { RetainedMessages } from "../retained.ts";
import type { SessionRecords } from "./session-records.ts";
import type { SessionSaver } from "./session-saver.ts";
import type { TopicIndex } from "./topic-index.ts";

/** Counts the topics that all sessions follow together; each costs memory. */
export class ReaderBound {
  readonly #max: number;
  count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** True if this many more may be followed. */
  hasRoom(more: number): boolean {
    return this.count + more <= this.#max;
  }
}

/** Shared by all sessions. */
export interface SessionParts {
  store: Store;
  topics: Topics;
  feeds: Feeds;
  subscriptions: Subscriptions;
  groups: SharedSubscriptions;
  backlog: Backlog;
  deadLetters: DeadLetterWriter;
  clock: Clock;
  retained: RetainedMessages;
  index: TopicIndex;
  records: SessionRecords;
  saver: SessionSaver;
  /** Readers of all sessions: one for each topic that a session follows. */
  readers: ReaderBound;
  /** Subscriptions of a session; further ones are refused with 0x97. */
  subscriptionsMax: number;
  /** Time after which a message of a shared subscription goes to another member, in ms. */
  ackWaitMs: number;
  onError: (error: unknown) => void;
}
