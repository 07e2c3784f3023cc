// Notification rules of buckets, and durable events about objects.

import type { TraceHeaders } from "@platform/kernel/trace";

/** Event names without the prefix `s3:` or `objstore:`. */
export type ObjectEventName =
  | "ObjectCreated:Put"
  | "ObjectCreated:Post"
  | "ObjectCreated:Copy"
  | "ObjectCreated:CompleteMultipartUpload"
  | "ObjectRemoved:Delete"
  | "ObjectRemoved:DeleteMarkerCreated"
  | "ObjectTagging:Put"
  | "ObjectTagging:Delete"
  | "ObjectAcl:Put"
  | "LifecycleExpiration:Delete"
  | "LifecycleExpiration:DeleteMarkerCreated"
  | "LifecycleTransition"
  | "ObjectRestore:Post"
  | "ObjectRestore:Completed"
  | "ObjectRestore:Delete"
  | "Replication:OperationFailedReplication"
  | "Replication:OperationMissedThreshold"
  | "Replication:OperationNotTracked"
  | "Replication:OperationReplicatedAfterThreshold";

/** One subscription of a bucket. */
export interface NotificationRule {
  id: string;
  /** Event names, or families with a trailing star: `ObjectCreated:*`. */
  events: readonly string[];
  prefix?: string;
  suffix?: string;
  /** S3's form in which it was put and is returned; a topic if absent. */
  form?: "queue" | "function";
  /** The destination, opaque to the store. */
  target: Readonly<Record<string, unknown>>;
}

/** The caller, for the record of the event. */
export interface Actor {
  principalId?: string;
  sourceIp?: string;
  requestId?: string;
  /** The trace of the request, as header fields. */
  trace?: TraceHeaders;
}

/** An event that waits for its delivery. It stays until it is acknowledged, even after crashes. */
export interface PendingEvent {
  /** Increases from event to event. */
  id: number;
  ruleId: string;
  target: Readonly<Record<string, unknown>>;
  name: ObjectEventName;
  bucket: string;
  key: string;
  versionId: string;
  sizeBytes: number;
  etag: string;
  timeMs: number;
  /** 16 upper-case hex digits; of two events of one key the later has the larger one. */
  sequencer: string;
  actor: Actor;
}

/** Pending events, oldest first. At most `StoreOptions.pendingEventsMax`; beyond it the oldest are dropped and counted. */
export interface EventOutbox {
  /** Up to `max` (1 000 at most) events with an id above `afterId`. */
  read(max: number, afterId?: number): Promise<PendingEvent[]>;
  /** Removes events that were delivered or abandoned. */
  acknowledge(ids: readonly number[]): Promise<void>;
  /** Calls back when there are new events. Returns a function that unsubscribes. */
  onEvents(listener: () => void): () => void;
}
