// Matching of lifecycle rules, and the times at which they are due.
import type { LifecycleRule } from "./lifecycle.ts";

const DAY_MS = 86_400_000;

/** The properties of an object that filters use. */
export interface FilterSubject {
  key: string;
  sizeBytes: number;
  tags: Readonly<Record<string, string>>;
}

/** True if the filter of the rule matches the object. */
export function matchesFilter({ filter }: LifecycleRule, subject: FilterSubject): boolean {
  const { prefix, tags, sizeGreaterThan, sizeLessThan } = filter;
  if (prefix !== undefined && !subject.key.startsWith(prefix)) return false;
  if (sizeGreaterThan !== undefined && subject.sizeBytes <= sizeGreaterThan) return false;
  if (sizeLessThan !== undefined && subject.sizeBytes >= sizeLessThan) return false;
  return Object.entries(tags ?? {}).every(([name, value]) => subject.tags[name] === value);
}

/**
 * Entries from before this time are `days` old at `nowMs`: an action is due at the following midnight (UTC)
 * (https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html).
 */
export function findDueBefore(days: number, nowMs: number): number {
  return Math.floor(nowMs / DAY_MS) * DAY_MS - days * DAY_MS;
}

/** The next action of a rule, and its time. */
interface DueAction {
  atMs: number;
  ruleId: string;
}

/** The first rule that expires a live object created at `sinceMs`, and the time; `undefined` if there is none. */
export function findExpiration(
  rules: readonly LifecycleRule[],
  subject: FilterSubject,
  sinceMs: number,
): DueAction | undefined {
  return findFirst(rules, (rule) => {
    const { expiration } = rule;
    if (expiration === undefined || !matchesFilter(rule, subject)) return undefined;
    if ("days" in expiration) return findDueDate(sinceMs, expiration.days);
    return "atMs" in expiration ? expiration.atMs : undefined;
  });
}

/** The first rule that ends an upload under `key` created at `sinceMs`, and the time; `undefined` if there is none. */
export function findUploadAbort(
  rules: readonly LifecycleRule[],
  key: string,
  sinceMs: number,
): DueAction | undefined {
  return findFirst(rules, ({ filter, abortIncompleteUpload }) =>
    abortIncompleteUpload === undefined || !key.startsWith(filter.prefix ?? "")
      ? undefined
      : findDueDate(sinceMs, abortIncompleteUpload.days),
  );
}

function findFirst(
  rules: readonly LifecycleRule[],
  findTime: (rule: LifecycleRule) => number | undefined,
): DueAction | undefined {
  let first: DueAction | undefined;
  for (const rule of rules) {
    const atMs = rule.enabled ? findTime(rule) : undefined;
    if (atMs === undefined || (first !== undefined && first.atMs <= atMs)) continue;
    first = { atMs, ruleId: rule.id };
  }
  return first;
}

/** The time at which an entry of `sinceMs` is due. */
export function findDueDate(sinceMs: number, days: number): number {
  return Math.ceil((sinceMs + days * DAY_MS) / DAY_MS) * DAY_MS;
}
