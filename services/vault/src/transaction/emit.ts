// Events enter the outbox in the transaction of their change.
import type { BucketState, WriterContext } from "./writer-context.ts";
import type { Actor, NotificationRule, ObjectEventName, PendingEvent } from "../model/event.ts";

/** The subject of an event. */
export interface EventSubject {
  key: string;
  versionId: string;
  sizeBytes: number;
  etag: string;
  seq: number;
}

const DROPPED_AT_ONCE = 100;

/** Adds an event for each matching rule of the bucket. */
export function emitEvent(
  context: WriterContext,
  { bucket }: BucketState,
  name: ObjectEventName,
  subject: EventSubject,
  actor: Actor | undefined,
  nowMs: number,
): void {
  const rules = bucket.settings.notification?.rules;
  if (rules === undefined) return;
  for (const rule of rules) {
    if (!matchesRule(rule, name, subject.key)) continue;
    makeRoom(context);
    const event: Omit<PendingEvent, "id"> = {
      ruleId: rule.id,
      target: rule.target,
      name,
      bucket: bucket.name,
      key: subject.key,
      versionId: subject.versionId,
      sizeBytes: subject.sizeBytes,
      etag: subject.etag,
      timeMs: nowMs,
      sequencer: subject.seq.toString(16).toUpperCase().padStart(16, "0"),
      actor: actor ?? {},
    };
    context.sql("insert into events (record) values (?)").run(JSON.stringify(event));
    context.totals.pendingEvents += 1;
  }
}

/** True if a rule applies to an event of a key. */
export function matchesRule(
  rule: Pick<NotificationRule, "events" | "prefix" | "suffix">,
  name: ObjectEventName,
  key: string,
): boolean {
  if (rule.prefix !== undefined && !key.startsWith(rule.prefix)) return false;
  if (rule.suffix !== undefined && !key.endsWith(rule.suffix)) return false;
  return rule.events.some(
    (wanted) => wanted === name || (wanted.endsWith(":*") && name.startsWith(wanted.slice(0, -1))),
  );
}

// Undelivered events must not fill the disk: the oldest are dropped and counted.
function makeRoom(context: WriterContext): void {
  if (context.totals.pendingEvents < context.limits.pendingEventsMax) return;
  const count = Math.min(DROPPED_AT_ONCE, context.totals.pendingEvents);
  const { changes } = context
    .sql("delete from events where id in (select id from events order by id limit ?)")
    .run(count);
  context.totals.pendingEvents -= Number(changes);
  context.totals.droppedEvents += Number(changes);
}
