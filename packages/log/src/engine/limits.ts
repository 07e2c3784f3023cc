// The limits of a log and their defaults.
import { LogError } from "../errors.ts";
import type { LogOptions } from "../types.ts";

const MEBIBYTE = 1024 * 1024;

const LIMITS_DEFAULT = {
  batchBytesMax: 8 * MEBIBYTE,
  pendingBytesMax: 64 * MEBIBYTE,
  groupBytesMax: 8 * MEBIBYTE,
  inPlaceBytesMin: 128 * 1024,
  journalFileBytes: 64 * MEBIBYTE,
  checkpointBytes: 64 * MEBIBYTE,
  checkpointMs: 60_000,
  openFilesMax: 512,
  indexBytesMax: 32 * MEBIBYTE,
  topicsMax: 200_000,
  partitionsMax: 400_000,
  producersMax: 1_000,
  producerExpiryMs: 24 * 60 * 60 * 1000,
  compactionKeysMax: 1_000_000,
  quarantineBytesMax: 16 * 1024 * MEBIBYTE,
};

/** All limits; see `LogOptions`. */
export type Limits = typeof LIMITS_DEFAULT;

/** Applies the defaults. Throws `invalid-argument`. */
export function limitsOf(options: LogOptions): Limits {
  const limits = { ...LIMITS_DEFAULT };
  for (const key of Object.keys(LIMITS_DEFAULT) as (keyof Limits)[]) {
    const value = options[key];
    if (value === undefined) continue;
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new LogError("invalid-argument", `${key} cannot be ${String(value)}`);
    }
    limits[key] = value;
  }
  return limits;
}
