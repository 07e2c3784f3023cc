// What a recovery found, and what of it could not be used.
import type { Catalogue, Topic } from "../catalogue/catalogue.ts";
import type { Partition } from "../catalogue/partition.ts";
import type { Disk } from "../disk/port.ts";
import type { Quarantine } from "../types.ts";

/** What recovery needs. */
export type RecoveryParts = { disk: Disk; nowMs: number; producersMax: number };

/** What recovery found; the engine goes on from here. */
export type Recovered = {
  catalogue: Catalogue;
  /** Partitions that the journal had something for. */
  dirty: Set<Partition>;
  changedTopics: Set<Topic>;
  manifestNumber: number;
  sharedNumber: number;
  leaderEpoch: number;
  /** The journal file to start, and where the one before it ended. */
  nextJournal: { number: number; previousEnd: number; earlier: Map<number, number> };
  journalBytes: number;
  cutBytes: number;
  quarantined: Quarantine[];
  /** Files that the last checkpoint gave up. */
  garbage: string[];
};

/** Copies what is damaged to `quarantine/` and takes note of it. */
export async function quarantine(
  disk: Disk,
  recovered: Recovered,
  report: Quarantine,
): Promise<void> {
  recovered.quarantined.push(report);
  await disk.makeFolder("quarantine");
  const source = await disk.open(report.file, "read").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (source === undefined) return;
  const name = `${report.file.replaceAll("/", "-")}-${report.position}`;
  const copy = await disk.open(`quarantine/${name}`, "create");
  try {
    const bytes = Buffer.alloc(report.length);
    const count = await source.read(bytes, 0, report.length, report.position);
    await copy.write([bytes.subarray(0, count)], 0);
    await copy.sync();
  } finally {
    await source.close();
    await copy.close();
  }
}
