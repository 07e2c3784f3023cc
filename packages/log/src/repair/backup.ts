// Lists the files of an undamaged log for a backup, while no process writes to it.
import { MANIFEST_FOLDER } from "../catalogue/manifest-files.ts";
import type { Disk } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import { JOURNAL_FOLDER, journalPath, listJournal } from "../journal/journal.ts";
import type { CheckReport } from "../types.ts";
import { extentEnd, extentPath } from "../partition/partition.ts";
import type { Recovered } from "../recovery/recovered.ts";
import { inspectLocked } from "./repair.ts";

/** Readable versions of the log's files; the newest is written (see `frame/frame.ts`). */
export const LOG_DATA_FORMATS = { oldest: 1, newest: 3 } as const;

/** Files that were being written during a crash; no recovery reads them. */
const UNFINISHED_ENDINGS = [".new", ".cleaned"];

/** A file of a log: path relative to the log's folder with `/` as separator, and size in bytes. */
export interface LogFile {
  path: string;
  bytes: number;
}

/** An undamaged log and the files to copy. */
export interface WholeLog {
  report: CheckReport;
  files: LogFile[];
  /** Segments that are only in the object store; `path` is that of their file, which a backup may contain instead. */
  objects: (LogFile & { object: string })[];
  /** The end of the journal: number of its last file (0 in a new log) and that file's size. */
  journal: { file: number; position: number };
}

/**
 * Locks the log, reads everything in it and calls `work`, during which the files do not change. Rejects with `locked` if
 * a process has the log open, and with `needs-repair` if anything is damaged.
 */
export async function holdWholeLog<Result>(
  disk: Disk,
  work: (log: WholeLog) => Promise<Result>,
): Promise<Result> {
  const unlock = await disk.lock();
  try {
    const { report, recovered } = await inspectLocked(disk);
    if (!report.isWhole) throw refuseDamaged(report);
    return await work({
      report,
      files: await listLogFiles(disk),
      objects: listRemote(recovered),
      journal: await findEnd(disk),
    });
  } finally {
    await unlock();
  }
}

function listRemote({ catalogue }: Recovered): WholeLog["objects"] {
  const objects: WholeLog["objects"] = [];
  for (const partition of catalogue.partitions()) {
    for (const extent of partition.extents) {
      if (extent.isRemote !== true) continue;
      const path = extentPath(partition, extent);
      objects.push({ object: extent.object!, path, bytes: extentEnd(extent) });
    }
  }
  return objects;
}

function refuseDamaged({ damaged, healed }: CheckReport): LogError {
  const [first] = [...damaged, ...healed];
  const text = `the log is damaged and was not copied (${first?.file}: ${first?.reason})`;
  return new LogError("needs-repair", text);
}

async function listLogFiles(disk: Disk): Promise<LogFile[]> {
  const files: LogFile[] = [];
  const addFolder = async (folder: string) => {
    for (const name of (await disk.list(folder)).sort()) {
      if (UNFINISHED_ENDINGS.some((ending) => name.endsWith(ending))) continue;
      const path = `${folder}/${name}`;
      files.push({ path, bytes: (await disk.size(path)) ?? 0 });
    }
  };
  for (const folder of [MANIFEST_FOLDER, JOURNAL_FOLDER, "shared"]) await addFolder(folder);
  for (const id of (await disk.list("topics")).sort()) {
    for (const index of await disk.list(`topics/${id}`)) await addFolder(`topics/${id}/${index}`);
  }
  return files;
}

async function findEnd(disk: Disk): Promise<WholeLog["journal"]> {
  const file = (await listJournal(disk)).at(-1) ?? 0;
  return { file, position: (await disk.size(journalPath(file))) ?? 0 };
}
