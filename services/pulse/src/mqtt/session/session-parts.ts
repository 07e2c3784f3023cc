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
  /** Subscriptions of a session; further ones are refused with 0x97. */
  subscriptionsMax: number;
  /** Time after which a message of a shared subscription goes to another member, in ms. */
  ackWaitMs: number;
  onError: (error: unknown) => void;
}
