// Tasks of the triggers that a new object fires, in the transaction of the object.
import type { ObjectEventName } from "../model/event.ts";
import { type GuestMark, TRIGGER_DEPTH_MAX } from "../model/guest.ts";
import { matchesRule } from "./emit.ts";
import { addTask } from "./task-rows.ts";
import type { BucketState, WriterContext } from "./writer-context.ts";

/** The parts of a new object that decide. */
interface FiringObject {
  readonly key: string;
  readonly event: ObjectEventName;
  readonly guest?: GuestMark;
  readonly nowMs: number;
}

/**
 * Adds a task for each trigger of the bucket that the object matches. The output of a guest does not fire the trigger that made
 * it, and that of the last trigger in a row fires none.
 */
export function fireTriggers(
  context: WriterContext,
  { id: bucket, bucket: { settings } }: BucketState,
  key: Uint8Array,
  version: string,
  { key: name, event, guest, nowMs }: FiringObject,
): void {
  const triggers = settings.triggers?.triggers;
  if (triggers === undefined || (guest?.depth ?? 0) >= TRIGGER_DEPTH_MAX) return;
  for (const { id: rule, enabled, events, filter } of triggers) {
    if (!enabled || !matchesRule({ events, ...filter }, event, name)) continue;
    if (guest?.trigger === nameTrigger(bucket, rule)) continue;
    addTask(context, { kind: "trigger", rule, bucket, key, version, nowMs });
  }
}

/** The name of a trigger in the mark of its outputs. */
export function nameTrigger(bucket: number, id: string): string {
  return `${bucket}/${id}`;
}
