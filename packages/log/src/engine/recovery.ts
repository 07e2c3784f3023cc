// From what a crash left on the disk to a log that goes on.
import { Catalogue } from "../catalogue/catalogue.ts";
import { loadManifest, type CheckpointDocument } from "../catalogue/manifest.ts";
import type { Disk } from "../disk/port.ts";
import { LogError } from "../errors.ts";
import { decodeFileHeader, fileHeaderBytes, scanFrames } from "../frame/frame.ts";
import { decodeEntry } from "../journal/entry.ts";
import { journalPath, listJournal } from "../journal/journal.ts";
import { quarantine, type Recovered, type RecoveryParts } from "./recovered.ts";
import { areEntriesWhole, replay } from "./replay.ts";
import { applyDocuments } from "./restore.ts";

/**
 * Reads the manifest and the journal after its checkpoint. Cuts a torn tail by starting a new
 * journal file behind it; copies damage below the durable end to `quarantine/`.
 */
export async function recover(parts: RecoveryParts): Promise<Recovered> {
  const manifest = await loadManifest(parts.disk);
  const catalogue = new Catalogue();
  const recovered: Recovered = {
    catalogue,
    dirty: new Set(),
    changedTopics: new Set(),
    manifestNumber: manifest?.number ?? 0,
    sharedNumber: 0,
    leaderEpoch: 0,
    nextJournal: { number: 1, previousEnd: 0, earlier: new Map() },
    journalBytes: 0,
    cutBytes: 0,
    quarantined: [],
    garbage: [],
  };
  if (manifest === undefined) {
    // The manifest is made before the first journal file, so one without the other was not us.
    const journals = await listJournal(parts.disk);
    if (journals.length === 0) return recovered;
    throw new LogError("corrupt", "there is a journal but no manifest");
  }
  for (const { file, position, length } of manifest.damaged) {
    await quarantine(parts.disk, recovered, { file, position, length, reason: "manifest" });
  }
  const checkpoint = applyDocuments(catalogue, manifest.documents);
  if (checkpoint === undefined) throw new LogError("corrupt", "the manifest has no checkpoint");
  recovered.sharedNumber = checkpoint.sharedNumber;
  recovered.leaderEpoch = checkpoint.leaderEpoch;
  await replayJournal(parts, recovered, checkpoint);
  recovered.garbage = checkpoint.garbage;
  for (const partition of catalogue.partitions()) {
    partition.durableEnd = Math.max(partition.durableEnd, partition.logStart);
    partition.nextOffset = partition.durableEnd;
  }
  if (recovered.quarantined.length > 0) recovered.leaderEpoch++;
  return recovered;
}

async function replayJournal(
  parts: RecoveryParts,
  recovered: Recovered,
  checkpoint: CheckpointDocument,
): Promise<void> {
  const { disk } = parts;
  const numbers = await listJournal(disk);
  const first = checkpoint.journal.file;
  const relevant = numbers.filter((number) => number >= first);
  for (const number of numbers) {
    // What is older is covered; a crash came between the manifest and its removal.
    if (number < first) await disk.remove(journalPath(number));
  }
  let next = { number: first, previousEnd: 0 };
  for (const number of relevant) {
    const bytes = await readFile(disk, journalPath(number));
    const header = decodeFileHeader("journal", bytes);
    const following = await peekHeader(disk, relevant, number);
    const position = number === first ? checkpoint.journal.position : fileHeaderBytes;
    if (header === undefined) {
      // A file that was just being made holds nothing; one that others follow was damaged.
      if (following === undefined) {
        await disk.remove(journalPath(number));
        break;
      }
      const file = journalPath(number);
      await quarantine(disk, recovered, {
        file,
        position: 0,
        length: bytes.length,
        reason: "header",
      });
      next = { number: number + 1, previousEnd: following.previousEnd };
      continue;
    }
    const limit = following?.previousEnd ?? bytes.length;
    const known = following?.previousEnd ?? (number === first ? position : 0);
    const scan = await scanFrames(bytes.subarray(0, limit), header, position, known, {
      isWhole: (entries) => areEntriesWhole(disk, recovered.catalogue, entries),
      async accept(entries) {
        for (const operation of entries.flatMap(decodeEntry)) {
          await replay(parts, recovered, operation);
        }
      },
    });
    recovered.journalBytes += scan.end - position;
    recovered.cutBytes += scan.cutBytes;
    for (const damage of scan.damaged) {
      await quarantine(disk, recovered, {
        file: journalPath(number),
        ...damage,
        reason: "a group below the durable end does not match its checksum",
      });
    }
    recovered.nextJournal.earlier.set(number, scan.end);
    next = { number: number + 1, previousEnd: scan.end };
  }
  recovered.nextJournal.number = next.number;
  recovered.nextJournal.previousEnd = next.previousEnd;
}

async function peekHeader(disk: Disk, numbers: readonly number[], before: number) {
  const number = numbers.find((candidate) => candidate > before);
  if (number === undefined) return undefined;
  const file = await disk.open(journalPath(number), "read");
  try {
    const bytes = Buffer.alloc(fileHeaderBytes);
    await file.read(bytes, 0, bytes.length, 0);
    return decodeFileHeader("journal", bytes);
  } finally {
    await file.close();
  }
}

async function readFile(disk: Disk, path: string): Promise<Buffer> {
  const file = await disk.open(path, "read");
  try {
    const bytes = Buffer.allocUnsafe(await file.size());
    const count = await file.read(bytes, 0, bytes.length, 0);
    return bytes.subarray(0, count);
  } finally {
    await file.close();
  }
}
