// Going through the journal's files after a checkpoint, one after another.
import { readFileIfThere, readPart } from "../disk/files.ts";
import type { Disk } from "../disk/port.ts";
import {
  decodeFileHeader,
  fileHeaderBytes,
  scanFrames,
  type DecodedHeader,
} from "../frame/frame.ts";
import { decodeEntry } from "../journal/entry.ts";
import { journalPath, type JournalPlace } from "../journal/journal.ts";
import type { Mark } from "../journal/mark.ts";
import type { Recovered, RecoveryParts } from "./recovered.ts";
import { areEntriesWhole, replay } from "./replay.ts";

/** The journal to go through. */
export type JournalRange = {
  /** Numbers of the files that exist, ascending. */
  numbers: readonly number[];
  first: JournalPlace;
  mark: Mark | "missing" | "damaged";
  /** It is normal that there is no mark. */
  mayLackMark: boolean;
};

/** Applies the entries from `range.first` on, and notes where the next journal file has to begin. */
export async function replayJournal(
  parts: RecoveryParts,
  recovered: Recovered,
  range: JournalRange,
): Promise<void> {
  const { numbers, first, mark } = range;
  const relevant = numbers.filter((number) => number >= first.file);
  for (const number of numbers) {
    if (number < first.file) recovered.covered.push(journalPath(number));
  }
  const markedFile = typeof mark === "object" ? mark.file : 0;
  const last = Math.max(relevant.at(-1) ?? 0, markedFile, isUnbegun(range) ? 0 : first.file);
  let next = { number: first.file, previousEnd: 0 };
  for (let number = first.file; number <= last; number++) {
    if (!relevant.includes(number)) {
      noteProblem(recovered, number, 0, "missing");
      next = { number: number + 1, previousEnd: 0 };
      continue;
    }
    const end = await replayFile(parts, recovered, range, relevant, number);
    if (end === "unused") break;
    next = { number: number + 1, previousEnd: end };
  }
  recovered.nextJournal.number = next.number;
  recovered.nextJournal.previousEnd = next.previousEnd;
}

/** Returns where the valid part of the file ends, or that it was just being made. */
async function replayFile(
  parts: RecoveryParts,
  recovered: Recovered,
  range: JournalRange,
  relevant: readonly number[],
  number: number,
): Promise<number | "unused"> {
  const { disk } = parts;
  const { first, mark } = range;
  const file = journalPath(number);
  const bytes = (await readFileIfThere(disk, file)) ?? Buffer.alloc(0);
  const header = decodeFileHeader("journal", bytes);
  const following = await peekHeader(disk, relevant, number);
  if (header === undefined || header.isDamaged) {
    if (number === relevant.at(-1) && isBeingMade(range, number, bytes.length)) return "unused";
  }
  if (header === undefined) {
    noteProblem(recovered, number, bytes.length, "no valid header");
    recovered.spoiled.push(file);
    return following?.previousEnd ?? bytes.length;
  }
  checkHeader(recovered, header, number);
  const position = number === first.file ? Math.max(first.position, header.bytes) : header.bytes;
  const limit = following?.previousEnd ?? bytes.length;
  const known = Math.max(
    following?.previousEnd ?? 0,
    number === first.file ? position : 0,
    typeof mark === "object" && mark.file === number ? mark.end : 0,
  );
  if (bytes.length < known) {
    const length = known - bytes.length;
    recovered.problems.push({ file, position: bytes.length, length, reason: "cut short" });
  }
  const scan = await scanFrames(bytes.subarray(0, limit), header, position, known, {
    isWhole: (entries) => areEntriesWhole(disk, recovered.catalogue, entries),
    async accept(entries) {
      for (const operation of entries.flatMap(decodeEntry)) replay(parts, recovered, operation);
    },
  });
  recovered.journalBytes += Math.max(0, scan.end - position);
  recovered.cutBytes += scan.cutBytes;
  for (const damage of scan.damaged) {
    const reason = "a group below the durable end does not match its checksum";
    recovered.quarantined.push({ file, ...damage, reason });
  }
  recovered.nextJournal.earlier.set(number, scan.end);
  return scan.end;
}

function checkHeader(recovered: Recovered, header: DecodedHeader, number: number): void {
  if (header.number !== number) {
    noteProblem(recovered, number, header.bytes, `it is journal file ${header.number}`);
  }
  if (header.generation > recovered.generation) {
    const { generation } = header;
    noteProblem(recovered, number, 0, `it follows generation ${generation} of the manifest`);
  }
  if (header.isDamaged) {
    recovered.healed.push({
      file: journalPath(number),
      position: 0,
      length: header.bytes,
      reason: "one copy of the header is damaged",
    });
  }
}

// A crash may come between a new manifest and the first journal file.
function isUnbegun({ numbers, mark, mayLackMark }: JournalRange): boolean {
  return numbers.length === 0 && mark === "missing" && mayLackMark;
}

// The mark names a file before anything is written to it, so one that it does not name is unused.
function isBeingMade({ mark, mayLackMark }: JournalRange, number: number, bytes: number): boolean {
  if (bytes > fileHeaderBytes) return false;
  return typeof mark === "object" ? mark.file < number : mark === "missing" && mayLackMark;
}

function noteProblem(recovered: Recovered, number: number, length: number, reason: string): void {
  recovered.problems.push({ file: journalPath(number), position: 0, length, reason });
}

async function peekHeader(disk: Disk, numbers: readonly number[], before: number) {
  const number = numbers.find((candidate) => candidate > before);
  if (number === undefined) return undefined;
  const bytes = await readPart(disk, journalPath(number), 0, fileHeaderBytes);
  return bytes && decodeFileHeader("journal", bytes);
}
