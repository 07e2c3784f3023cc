// Replaces the keys in the heads of records. A file is copied, changed and renamed: its records stay where they are, because
// wrapped keys have a fixed length.
import { constants } from "node:fs";
import { copyFile } from "node:fs/promises";
import { dirname } from "node:path";
import { closeFile, openFile, removeFile, renameFile, syncData, writeAll } from "../disk/files.ts";
import type { BlobId, WrappedCipher } from "../model/blob.ts";
import type { Drive } from "./drive/drive.ts";
import { encodeHead } from "./layout.ts";
import { type ScannedRecord, scanRecords } from "./record-scan.ts";

/** Ciphers that heads are to have, by blob. */
export type NewCiphers = ReadonlyMap<BlobId, WrappedCipher>;

/** The head of a record with another cipher; `undefined` if it would have another length, or the record has no cipher. */
export function replaceCipher(
  { id, stored, description, headBytes }: Omit<ScannedRecord, "read" | "verify">,
  wrapped: WrappedCipher,
): Buffer | undefined {
  const { head: _, ...cipher } = wrapped;
  const before = description as { cipher?: object };
  if (before.cipher === undefined) return undefined;
  const head = encodeHead(id, stored, { ...before, cipher });
  return head.length === headBytes ? head : undefined;
}

/**
 * Replaces heads in a segment or a file that nothing is appended to. Returns the blobs whose records have the new cipher, or
 * none. `isKept` is asked last: false leaves the file as it is.
 */
export async function rewriteHeads(
  drive: Drive,
  path: string,
  staged: string,
  ciphers: NewCiphers,
  isKept: () => boolean,
): Promise<BlobId[]> {
  const done: BlobId[] = [];
  let isRenamed = false;
  try {
    await copyFile(path, staged, constants.COPYFILE_FICLONE);
    const fd = await openFile(staged, "r+");
    try {
      for await (const record of scanRecords(fd)) {
        const cipher = ciphers.get(record.id);
        if (cipher === undefined) continue;
        const isPlain = (record.description as { cipher?: object }).cipher === undefined;
        const head = replaceCipher(record, cipher);
        if (head !== undefined) await writeAll(fd, [head], record.framesAt - record.headBytes);
        if (head !== undefined || isPlain) done.push(record.id);
      }
      await syncData(fd);
    } finally {
      await closeFile(fd);
    }
    if (!isKept()) return [];
    drive.files.forget(path);
    await renameFile(staged, path);
    isRenamed = true;
    await drive.folderSync.sync(dirname(path));
    return done;
  } finally {
    if (!isRenamed) await removeFile(staged).catch(() => undefined);
  }
}
