// Object lock: checks if a version may be deleted and if its protection may be changed.
import type { VersionRow } from "../index/records.ts";
import { StoreError } from "../model/store-error.ts";
import type { ObjectLockConfiguration, Retention } from "../model/lock.ts";

const DAY_MS = 86_400_000;

type Protection = Pick<VersionRow, "retain_mode" | "retain_until" | "hold">;

/** Throws `AccessDenied` if a legal hold or a retention protects the version. */
export function requireDeletable(row: Protection, nowMs: number, bypassGovernance: boolean): void {
  if (row.hold === 1) throw denied("a legal hold");
  if (row.retain_mode === null || row.retain_until === null || row.retain_until <= nowMs) return;
  if (row.retain_mode === "COMPLIANCE") throw denied("compliance retention");
  if (!bypassGovernance) throw denied("governance retention");
}

/** Throws `AccessDenied` if the new retention would end earlier or have another mode, unless it may be bypassed. */
export function requireRetentionChange(
  row: Protection,
  next: Retention | undefined,
  nowMs: number,
  bypassGovernance: boolean,
): void {
  if (row.retain_mode === null || row.retain_until === null || row.retain_until <= nowMs) return;
  const isShorter = next === undefined || next.untilMs < row.retain_until;
  if (row.retain_mode === "COMPLIANCE") {
    if (isShorter || next.mode !== "COMPLIANCE") throw denied("compliance retention");
    return;
  }
  const isChanged = isShorter || next.mode !== "GOVERNANCE";
  if (isChanged && !bypassGovernance) throw denied("governance retention");
}

/** The bucket's default retention for new versions. */
export function computeDefaultRetention(
  configuration: ObjectLockConfiguration | undefined,
  nowMs: number,
): Retention | undefined {
  const rule = configuration?.defaultRetention;
  if (rule === undefined) return undefined;
  if ("days" in rule) return { mode: rule.mode, untilMs: nowMs + rule.days * DAY_MS };
  const until = new Date(nowMs);
  until.setUTCFullYear(until.getUTCFullYear() + rule.years);
  return { mode: rule.mode, untilMs: until.getTime() };
}

function denied(reason: string): StoreError {
  return new StoreError(
    "AccessDenied",
    `Access Denied because object protected by object lock (${reason})`,
  );
}
