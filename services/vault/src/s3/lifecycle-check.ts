// Contradictions between valid parts of a lifecycle rule.
import type { LifecycleRule } from "../model/lifecycle.ts";
import { S3Error } from "../model/s3-error.ts";

type Time = { readonly days: number } | { readonly atMs: number };

/** Throws InvalidRequest or InvalidArgument for a rule with contradicting parts. */
export function checkLifecycleRule(rule: LifecycleRule): void {
  const { expiration, noncurrentVersionExpiration: noncurrent } = rule;
  const { transitions = [], noncurrentTransitions = [] } = rule;
  const actions = [expiration, noncurrent, rule.abortIncompleteUpload];
  const count = actions.filter(Boolean).length + transitions.length + noncurrentTransitions.length;
  if (count === 0)
    throw new S3Error("InvalidRequest", "At least one action needs to be specified in a rule");
  checkFilter(rule);
  checkClasses(transitions, "Transition");
  checkClasses(noncurrentTransitions, "NoncurrentVersionTransition");
  if (expiration !== undefined && !("expiredObjectDeleteMarker" in expiration)) {
    checkForms([...transitions, expiration]);
    const name = "days" in expiration ? "Days" : "Date";
    checkOrder(expiration, transitions, `'${name}' in the Expiration`);
  } else {
    checkForms(transitions);
  }
  if (noncurrent !== undefined) {
    const name = "'NoncurrentDays' in the NoncurrentVersionExpiration";
    checkOrder(noncurrent, noncurrentTransitions, name);
  }
}

// Uploads and delete markers have neither tags nor sizes.
function checkFilter({ filter, expiration, abortIncompleteUpload }: LifecycleRule): void {
  const hasSize = filter.sizeGreaterThan !== undefined || filter.sizeLessThan !== undefined;
  if (filter.tags === undefined && !hasSize) return;
  const criterion = filter.tags === undefined ? "Object Size" : "Tags";
  const isForMarkers = expiration !== undefined && "expiredObjectDeleteMarker" in expiration;
  if (abortIncompleteUpload === undefined && !isForMarkers) return;
  const action = isForMarkers ? "ExpiredObjectDeleteMarker" : "AbortIncompleteMultipartUpload";
  throw new S3Error("InvalidRequest", `${action} cannot be specified with ${criterion}.`);
}

function checkClasses(transitions: readonly { storageClass: string }[], name: string): void {
  if (new Set(transitions.map((one) => one.storageClass)).size === transitions.length) return;
  throw new S3Error(
    "InvalidRequest",
    `'StorageClass' must be different for '${name}' actions in same 'Rule'`,
  );
}

function checkForms(times: readonly Time[]): void {
  if (times.every((time) => "days" in time) || times.every((time) => "atMs" in time)) return;
  throw new S3Error(
    "InvalidRequest",
    "Found mixed 'Date' and 'Days' based Expiration and Transition actions in lifecycle rule",
  );
}

// Expired objects cannot be moved.
function checkOrder(last: Time, transitions: readonly Time[], named: string): void {
  if (transitions.every((time) => toNumber(time) < toNumber(last))) return;
  throw new S3Error(
    "InvalidArgument",
    `${named} action must be greater than that in the Transition action`,
  );
}

function toNumber(time: Time): number {
  return "days" in time ? time.days : time.atMs;
}
