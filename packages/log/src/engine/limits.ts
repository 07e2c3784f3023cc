// The bounds of a log: what they are by default, and which may be given.
import { LogError } from "../errors.ts";
import type { LogOptions } from "../types.ts";

const mebibyte = 1024 * 1024;

const limitsDefault = {
  batchBytesMax: 8 * mebibyte,
  pendingBytesMax: 64 * mebibyte,
  groupBytesMax: 8 * mebibyte,
  inPlaceBytesMin: 128 * 1024,
  journalFileBytes: 64 * mebibyte,
  checkpointBytes: 64 * mebibyte,
  checkpointMs: 60_000,
  openFilesMax: 512,
  indexBytesMax: 32 * mebibyte,
  topicsMax: 200_000,
  partitionsMax: 400_000,
  producersMax: 1_000,
  producerExpiryMs: 24 * 60 * 60 * 1000,
  compactionKeysMax: 1_000_000,
  quarantineBytesMax: 16 * 1024 * mebibyte,
};

/** Every bound; `LogOptions` says what each means. */
export type Limits = typeof limitsDefault;

/** The bounds that are given, and the defaults of the others. Throws `invalid-argument`. */
export function limitsOf(options: LogOptions): Limits {
  const limits = { ...limitsDefault };
  for (const key of Object.keys(limitsDefault) as (keyof Limits)[]) {
    const value = options[key];
    if (value === undefined) continue;
    if (!Number.isSafeInteger(value) || value < 1) {
      throw new LogError("invalid-argument", `${key} cannot be ${String(value)}`);
    }
    limits[key] = value;
  }
  return limits;
}
