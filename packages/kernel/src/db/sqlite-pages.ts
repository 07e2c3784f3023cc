// Checksums of the pages of a SQLite file.
import { fstatSync, readSync } from "node:fs";
import { crc32 } from "node:zlib";

/** Of a page that was never written, since it was free when the file grew. */
const UNKNOWN = 0;
const LOCK_BYTE = 2 ** 30;
const READ_BYTES = 1024 * 1024;

/** Checksums of the pages of a file, by number minus one. */
export interface PageSums {
  pageBytes: number;
  pages: Uint32Array;
}

/** The sums of all pages of a file, and the numbers of those that differ from the expected ones. */
export interface ReadPages {
  found: PageSums;
  different: number[];
}

/** Reads all pages of an open file, and compares them if their sums are known. */
export function readPages(descriptor: number, expected: PageSums | undefined): ReadPages {
  const pageBytes = expected?.pageBytes ?? readPageBytes(descriptor);
  const count = Math.floor(fstatSync(descriptor).size / pageBytes);
  const pages = new Uint32Array(count);
  const buffer = Buffer.alloc(Math.floor(READ_BYTES / pageBytes) * pageBytes);
  for (let page = 1; page <= count;) {
    const read = readSync(descriptor, buffer, 0, buffer.length, (page - 1) * pageBytes);
    const end = page + Math.floor(read / pageBytes);
    if (end === page) break;
    for (let at = 0; page < end && page <= count; page++, at += pageBytes)
      pages[page - 1] = crc32(buffer.subarray(at, at + pageBytes));
  }
  return { found: { pageBytes, pages }, different: comparePages(pages, expected) };
}

function comparePages(pages: Uint32Array, expected: PageSums | undefined): number[] {
  if (expected === undefined) return [];
  // SQLite locks bytes of this page, and never writes it.
  const lockPage = LOCK_BYTE / expected.pageBytes + 1;
  const different: number[] = [];
  for (const [index, crc] of expected.pages.entries()) {
    const isKnown = crc !== UNKNOWN && index + 1 !== lockPage;
    if (isKnown && pages[index] !== crc) different.push(index + 1);
  }
  return different;
}

/** Describes pages that differ from their sums. */
export function describePages(pages: readonly number[]): string {
  const more = pages.length > 5 ? ` and ${pages.length - 5} more` : "";
  return `page ${pages.slice(0, 5).join(", ")}${more} changed since it was written: by a fault of the disk, another program, or an older copy of the file`;
}

function readPageBytes(descriptor: number): number {
  const bytes = Buffer.alloc(2);
  if (readSync(descriptor, bytes, 0, 2, 16) < 2) return 4_096;
  const stored = bytes.readUInt16BE(0);
  const pageBytes = stored === 1 ? 65_536 : stored;
  return pageBytes >= 512 ? pageBytes : 4_096;
}

/** Changes the sums to those of a file with `pageCount` pages. */
export function applyPages(
  sums: PageSums,
  pages: ReadonlyMap<number, number>,
  pageCount: number,
): void {
  if (sums.pages.length !== pageCount) {
    const resized = new Uint32Array(pageCount);
    resized.set(sums.pages.subarray(0, pageCount));
    sums.pages = resized;
  }
  for (const [page, crc] of pages) if (page <= pageCount) sums.pages[page - 1] = crc;
}
