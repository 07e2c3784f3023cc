// The steps of a job, one after the other. A step that the store refuses for the moment is tried again.
import { setTimeout as wait } from "node:timers/promises";
import { BackupError } from "@platform/kernel/backup";
import { S3Error } from "../model/s3-error.ts";
import { StoreError } from "../model/store-error.ts";

/** Steps that the store refuses are tried again, after 1 s to 1 min. */
const ATTEMPTS_MAX = 8;
const TEMPORARY: ReadonlySet<string> = new Set([
  "SlowDown",
  "ServiceUnavailable",
  "InsufficientStorage",
  "InternalError",
]);

/** A job that runs. */
export interface Run {
  /** Works until the end, or until it is stopped. Rejects only if the store cannot be written any more. */
  run(): Promise<void>;
  /** Changes the objects per second of the next steps; 0 is no limit. */
  set rate(rate: number);
}

/** Runs steps until one returns true, or the signal aborts. Rejects with the error of a step that cannot succeed. */
export async function runSteps(step: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; !signal.aborted;) {
    try {
      if (await step()) return;
      attempt = 1;
    } catch (error) {
      if (signal.aborted) return;
      const isTemporary = error instanceof StoreError && TEMPORARY.has(error.code);
      if (!isTemporary || attempt >= ATTEMPTS_MAX) throw error;
      await pause(Math.min(60_000, 1_000 * 2 ** (attempt - 1)), signal);
      attempt += 1;
    }
  }
}

/** Waits; ends early if the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await wait(ms, undefined, { signal }).catch(() => undefined);
}

/** The reason of a job that has failed. */
export function describeReason(error: unknown): string {
  if (error instanceof BackupError) return error.message;
  if (error instanceof S3Error || error instanceof StoreError)
    return `${error.code}: ${error.message}`;
  return "InternalError: The store has failed";
}
