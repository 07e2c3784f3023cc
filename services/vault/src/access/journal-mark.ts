// The mark of a journal: length and checksum of what it held, so that a missing, shortened, changed or older journal is noticed.
//
//   FILE.mark   a line of JSON, padded to 256 bytes and overwritten in place after each record
//
// It is not synced: after a power cut it may be older than the journal, which then begins with what the mark describes.
import { closeSync, constants, fdatasyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { crc32 } from "node:zlib";
import { z } from "zod";

const MARK_BYTES = 256;

const stateSchema = z.strictObject({
  bytes: z.int().min(0),
  /** CRC-32 of these bytes. */
  crc: z.int().min(0),
});
const markSchema = z.strictObject({
  now: stateSchema,
  /** The state after a replacement that may have been interrupted. */
  next: stateSchema.optional(),
});

/** Length and checksum of a file. */
export type FileState = z.output<typeof stateSchema>;

/** State of an empty file. */
export const EMPTY_FILE: FileState = { bytes: 0, crc: 0 };

/** State of a file to which `text` was appended. */
export function extendState({ bytes, crc }: FileState, text: Uint8Array): FileState {
  return { bytes: bytes + text.length, crc: crc32(text, crc) };
}

/** The mark of the journal at a path. */
export class JournalMark {
  readonly #path: string;

  constructor(journalPath: string) {
    this.#path = `${journalPath}.mark`;
  }

  /** Describes the loss if a journal with this content does not begin with what it held. */
  findLoss(content: Uint8Array): string | undefined {
    const mark = this.#read();
    if (mark === undefined) return undefined;
    const states = [mark.now, ...(mark.next === undefined ? [] : [mark.next])];
    const isWhole = states.some(
      ({ bytes, crc }) => bytes <= content.length && crc32(content.subarray(0, bytes)) === crc,
    );
    if (isWhole) return undefined;
    return content.length < mark.now.bytes
      ? `it held ${mark.now.bytes} bytes, and has ${content.length}`
      : "it is damaged or an older copy";
  }

  /** Records the state of the journal. A mark that cannot be written detects less; the journal itself is safe. */
  save(now: FileState): void {
    this.#write({ now }, false);
  }

  /** Records that the journal is about to be replaced; on disk when it returns. */
  announce(now: FileState, next: FileState): void {
    this.#write({ now, next }, true);
  }

  #write(mark: z.output<typeof markSchema>, isSynced: boolean): void {
    try {
      const descriptor = openSync(this.#path, constants.O_RDWR | constants.O_CREAT, 0o600);
      try {
        writeSync(descriptor, JSON.stringify(mark).padEnd(MARK_BYTES), 0);
        if (isSynced) fdatasyncSync(descriptor);
      } finally {
        closeSync(descriptor);
      }
    } catch {
      // On a full disk, for example.
    }
  }

  // A damaged mark proves nothing.
  #read(): z.output<typeof markSchema> | undefined {
    try {
      return markSchema.safeParse(JSON.parse(readFileSync(this.#path, "utf8"))).data;
    } catch {
      return undefined;
    }
  }
}
