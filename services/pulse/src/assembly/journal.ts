// The log that everything is stored in.
import type { Service } from "@platform/chassis";
import { DiskReserve } from "@platform/kernel/files";
import { describeFullDisk } from "@platform/kernel/health";
import { openLog, openNodeDisk, type Log, type LogStats, type SyncMode } from "@platform/log";
import type { PulseConfig } from "../config.ts";
import { Offload } from "../offload/offload.ts";
import { explainOpenError, logEvent, logRecovery } from "../store/events.ts";
import { findLogFolder } from "../store/folder.ts";
import { BATCH_BYTES_MAX } from "../store/store.ts";

/** Space beside the log that is given up on a full disk: without it, the log cannot be opened to delete anything. */
const START_RESERVE_BYTES = 4 * 1024 ** 2;

/** The log and the object store of its closed segments. */
export interface Journal {
  readonly journal: Log;
  readonly offload: Offload;
}

/** Opens the log; what was repaired or damaged is logged. Rejects with an explanation. */
export async function openJournal(
  config: PulseConfig,
  { log, lifecycle, health, clock }: Service,
): Promise<Journal> {
  const folder = findLogFolder(config);
  const startReserve = new DiskReserve(folder, START_RESERVE_BYTES);
  if (describeFullDisk(folder) !== undefined) startReserve.release();
  const offload = await Offload.open({ config, clock, log });
  const journal = await openLog({
    disk: openNodeDisk(folder),
    sync: toSyncMode(config.fsync),
    ...(config.disk_reserve === undefined ? {} : { reserveBytes: config.disk_reserve }),
    batchBytesMax: BATCH_BYTES_MAX,
    quarantineBytesMax: config.quarantine_bytes_max,
    cold: offload.cold,
    onEvent: (event) => {
      logEvent(log, event, config);
      if (event.kind === "disk-has-room") startReserve.take();
    },
  }).catch((error: unknown) => {
    throw explainOpenError(error, config);
  });
  startReserve.take();
  lifecycle.onDrain("log", () => journal.close(), "database");
  offload.start(journal);
  lifecycle.onDrain("offload", () => offload.close());
  logRecovery(log, journal.recovery);
  health.addCheck("log", () => describeLogState(journal.stats()));
  health.addWarning("log", () => describeDamage(journal.stats()));
  health.addWarning("offload", () => (offload.isUnconfigured ? "unconfigured" : undefined));
  return { journal, offload };
}

function toSyncMode(text: string): SyncMode {
  if (text === "group" || text === "os") return { kind: text };
  return { kind: "interval", ms: Number(text.slice("interval:".length)) };
}

function describeDamage({ damagedRanges }: LogStats): string | undefined {
  if (damagedRanges === 0) return undefined;
  return `${damagedRanges} damaged ranges of stored messages cannot be read`;
}

function describeLogState({ state, diskFull }: LogStats): string | undefined {
  if (state !== "open") return "the log takes no writes";
  return diskFull ? "disk_full: publishing is refused until space is free" : undefined;
}
