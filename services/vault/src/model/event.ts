// What happened to objects, as told to subscribers: rules in, durable events out.

/** The names of events, without the `s3:` or `objstore:` before them. */
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
  | "LifecycleExpiration:DeleteMarkerCreated";

/** One subscription of a bucket. */
export interface NotificationRule {
  id: string;
  /** Names of events, or a family with a star at its end: `ObjectCreated:*`. */
  events: readonly string[];
  prefix?: string;
  suffix?: string;
  /** Which of S3's three forms it was put in, and is told in; a topic where it is not there. */
  form?: "queue" | "function";
  /** Where to; the store hands it out with each event and does not look inside. */
  target: Readonly<Record<string, unknown>>;
}

/** Who did it, for the event's record. */
export interface Actor {
  principalId?: string;
  sourceIp?: string;
  requestId?: string;
}

/** An event that waits for its delivery. It stays until it is acknowledged, through crashes too. */
export interface PendingEvent {
  /** Rises from event to event. */
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

/** Events that wait, oldest first. At most `StoreOptions.pendingEventsMax`; past it, the oldest are dropped and counted. */
export interface EventOutbox {
  /** Up to `max` (1 000 at most) events with an id above `afterId`. */
  read(max: number, afterId?: number): Promise<PendingEvent[]>;
  /** Forgets events that were delivered or given up. */
  acknowledge(ids: readonly number[]): Promise<void>;
  /** Calls back when there are new events; returns the way to stop. */
  onEvents(listener: () => void): () => void;
}
