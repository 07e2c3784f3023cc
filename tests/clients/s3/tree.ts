// Files that clients upload and download.
import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const LARGE_BYTES = 12 * 1024 * 1024;

/** Writes a tree of small, empty and large files with names that require escaping. */
export function writeTree(folder: string): void {
  const files: [name: string, body: Buffer | string][] = [
    ["plain.txt", "plain"],
    ["empty", ""],
    ["a b+c%20d.txt", "space, plus, percent"],
    ["grüße/日本語 🎈.txt", "beyond ASCII"],
    ["quo'te&amp;<x>.txt", "marks of XML"],
    ["deep/er/and/deeper/file", randomBytes(40_000)],
    ["large.bin", randomBytes(LARGE_BYTES)],
  ];
  for (let number = 0; number < 20; number += 1) files.push([`many/${number}`, `file ${number}`]);
  for (const [name, body] of files) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, body);
  }
}
