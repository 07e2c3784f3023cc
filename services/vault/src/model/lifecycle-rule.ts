// What a rule is for, and when it is due.
import type { LifecycleRule } from "./lifecycle.ts";

const DAY_MS = 86_400_000;

/** What of an object a filter looks at. */
export interface FilterSubject {
  key: string;
  sizeBytes: number;
  tags: Readonly<Record<string, string>>;
}

/** Whether the rule's filter names the object. */
export function matchesFilter({ filter }: LifecycleRule, subject: FilterSubject): boolean {
  const { prefix, tags, sizeGreaterThan, sizeLessThan } = filter;
  if (prefix !== undefined && !subject.key.startsWith(prefix)) return false;
  if (sizeGreaterThan !== undefined && subject.sizeBytes <= sizeGreaterThan) return false;
  if (sizeLessThan !== undefined && subject.sizeBytes >= sizeLessThan) return false;
  return Object.entries(tags ?? {}).every(([name, value]) => subject.tags[name] === value);
}

/**
 * Things that began before this moment are `days` old at `nowMs`: an action is due at the midnight (UTC) that follows
 * (https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html).
 */
export function findDueBefore(days: number, nowMs: number): number {
  return Math.floor(nowMs / DAY_MS) * DAY_MS - days * DAY_MS;
}

/** What a rule will do, and when. */
interface DueAction {
  atMs: number;
  ruleId: string;
}

/** When the first of the rules expires a live object that began at `sinceMs`; undefined where none does. */
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

/** When the first of the rules ends an upload under `key` that began at `sinceMs`; undefined where none does. */
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

/** When what began at `sinceMs` is due. */
export function findDueDate(sinceMs: number, days: number): number {
  return Math.ceil((sinceMs + days * DAY_MS) / DAY_MS) * DAY_MS;
}
