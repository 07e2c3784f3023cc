// `platform-pulse check` and `repair`: check and repair the log while the broker is stopped.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { findFileHolder } from "@platform/kernel/lifecycle";
import {
  checkLog,
  ColdStoreError,
  LogError,
  openNodeDisk,
  repairLog,
  type CheckReport,
  type ObjectCheck,
} from "@platform/log";
import type { PulseConfig } from "../config.ts";
import { openObjectStore } from "../offload/offload.ts";
import { findLogFolder, formatCommand, type LogPlace } from "./folder.ts";

/** Exit code for a damaged log. */
const EXIT_DAMAGED = 1;

/** Depth of a check or repair in object storage. */
export interface OffloadedOptions {
  /** Only the disk. */
  local?: boolean;
  /** Reads and verifies all of them; otherwise only their sizes are compared. */
  read_offloaded?: boolean;
}

/** Prints the result of a check; returns the exit code. */
export async function checkFolder(
  config: PulseConfig,
  print: (line: string) => void,
  options: OffloadedOptions = {},
): Promise<number> {
  const folder = requireFolder(config);
  const report = await withObjects(config, options, (objects) =>
    checkLog(openNodeDisk(folder), objects),
  ).catch((error: unknown) => explainLocked(error, folder));
  printReport(folder, report, print);
  if (report.isWhole) return 0;
  const repair = formatCommand(config, "repair");
  print(
    report.opens
      ? `The broker starts with this log. This quarantines the damaged parts: ${repair}`
      : `The broker does not start with this log. Restore the files named above, or run: ${repair}`,
  );
  return EXIT_DAMAGED;
}

/** Repairs the log, or with `dry_run` prints what a repair would quarantine; returns the exit code. */
export async function repairFolder(
  config: PulseConfig,
  options: { dry_run: boolean; local?: boolean },
  print: (line: string) => void,
): Promise<number> {
  const folder = requireFolder(config);
  const disk = openNodeDisk(folder);
  const explain = (error: unknown) => explainLocked(error, folder);
  if (options.dry_run) {
    const check = (objects: ObjectCheck | undefined) => checkLog(disk, objects);
    printReport(folder, await withObjects(config, options, check).catch(explain), print);
    print("Nothing was changed.");
    return 0;
  }
  const { quarantine_bytes_max: quarantineBytesMax } = config;
  const report = await withObjects(config, options, (objects) =>
    repairLog({ disk, quarantineBytesMax }, objects),
  ).catch(explain);
  printReport(folder, report, print);
  print(
    report.isWhole
      ? "No repair was necessary."
      : `Repaired. The damaged parts are in ${folder}/quarantine.`,
  );
  return 0;
}

/** Runs work with the object store of the configuration or the data folder, if there is one. */
async function withObjects<Result>(
  config: PulseConfig,
  { local = false, read_offloaded: isRead = false }: OffloadedOptions,
  work: (objects: ObjectCheck | undefined) => Promise<Result>,
): Promise<Result> {
  const store = local ? undefined : await openObjectStore(config);
  try {
    return await work(store && { store, isRead });
  } catch (error) {
    if (!(error instanceof ColdStoreError)) throw error;
    const text = `object storage fails (${error.message}); --local looks at the disk alone`;
    throw new Error(text, { cause: error });
  } finally {
    store?.close();
  }
}

/** The log's folder. Throws if it does not exist: a mistyped path must not create an empty log and report it as undamaged. */
export function requireFolder(config: LogPlace): string {
  const folder = findLogFolder(config);
  if (!existsSync(folder)) throw new Error(`there is no log in ${folder}`);
  return folder;
}

/** Rethrows an error of opening a log; if it is locked, the message names the process that holds it. */
export async function explainLocked(error: unknown, folder: string): Promise<never> {
  if (!(error instanceof LogError) || error.code !== "locked") throw error;
  const holder = await findFileHolder(join(folder, "lock.db"));
  const by = holder === undefined ? "" : `: ${holder.name} (process ${holder.pid})`;
  const text = `${error.message}${by}; stop the broker first`;
  throw new LogError("locked", text, { cause: error });
}

function printReport(folder: string, report: CheckReport, print: (line: string) => void): void {
  const { topics, partitions, bytes, objects, damaged, healed } = report;
  print(`${folder}: ${topics} topics, ${partitions} partitions, ${bytes} bytes intact in segments`);
  if (objects.count > 0) {
    const state = objects.isChecked ? "looked for" : "not looked for";
    print(`${objects.count} segments in object storage, ${objects.bytes} bytes: ${state}`);
  }
  for (const { file, position, length, reason } of damaged) {
    print(`damaged   ${file} at ${position}, ${length} bytes: ${reason}`);
  }
  for (const { file, reason } of healed)
    print(`restored from its copy at the next start   ${file}: ${reason}`);
  if (report.isWhole) print("No damage was found.");
}
