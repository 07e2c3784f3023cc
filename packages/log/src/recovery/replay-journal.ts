// Replays the journal files after a checkpoint.
import { readFileIfThere, readPart } from "../disk/files.ts";
import type { Disk } from "../disk/port.ts";
import {
  decodeFileHeader,
  FILE_HEADER_BYTES,
  refuseNewer,
  scanFrames,
  type DecodedHeader,
} from "../frame/frame.ts";
import { decodeEntry } from "../journal/entry.ts";
import { journalPath, type JournalPlace } from "../journal/journal.ts";
import type { Mark } from "../journal/mark.ts";
import type { Recovered, RecoveryOptions } from "./recovered.ts";
import { areEntriesWhole, replay } from "./replay.ts";

/** The part of the journal to replay. */
export interface JournalRange {
  /** Numbers of the files that exist, ascending. */
  numbers: readonly number[];
  first: JournalPlace;
  mark: Mark | "missing" | "damaged";
  /** A missing mark is normal. */
  mayLackMark: boolean;
}

/** Applies the entries from `range.first` on, and records the start of the next journal file. */
export async function replayJournal(
  options: RecoveryOptions,
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
    const end = await replayFile(options, recovered, range, relevant, number);
    if (end === "unused") break;
    next = { number: number + 1, previousEnd: end };
  }
  recovered.nextJournal.number = next.number;
  recovered.nextJournal.previousEnd = next.previousEnd;
}

/** Returns the end of the valid part of the file, or `unused` if the file was still being created. */
async function replayFile(
  options: RecoveryOptions,
  recovered: Recovered,
  range: JournalRange,
  relevant: readonly number[],
  number: number,
): Promise<number | "unused"> {
  const { disk } = options;
  const { first, mark } = range;
  const file = journalPath(number);
  const bytes = (await readFileIfThere(disk, file)) ?? Buffer.alloc(0);
  refuseNewer("journal", bytes);
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
    recovered.problems.push({ file, position: bytes.length, length, reason: "truncated" });
  }
  const scan = await scanFrames(bytes.subarray(0, limit), header, position, known, {
    isWhole: (entries) => areEntriesWhole(disk, recovered.catalogue, entries),
    async accept(entries) {
      for (const operation of entries.flatMap(decodeEntry)) replay(options, recovered, operation);
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

// The mark names a file before anything is written to it, so a later file is unused.
function isBeingMade({ mark, mayLackMark }: JournalRange, number: number, bytes: number): boolean {
  if (bytes > FILE_HEADER_BYTES) return false;
  return typeof mark === "object" ? mark.file < number : mark === "missing" && mayLackMark;
}

function noteProblem(recovered: Recovered, number: number, length: number, reason: string): void {
  recovered.problems.push({ file: journalPath(number), position: 0, length, reason });
}

async function peekHeader(disk: Disk, numbers: readonly number[], before: number) {
  const number = numbers.find((candidate) => candidate > before);
  if (number === undefined) return undefined;
  const bytes = await readPart(disk, journalPath(number), 0, FILE_HEADER_BYTES);
  return bytes && decodeFileHeader("journal", bytes);
}
