// The list of common passwords for the script that judges new ones: hashes, because the list itself has 170 KB.
import { COMMON_PASSWORDS } from "../sign-in/password-policy.ts";

let written: string | undefined;

/**
 * A module whose default export is base64 of the gaps between the sorted 28-bit hashes, in groups of 7 bits, the lowest
 * first; the highest bit of a byte is set if more follow. Written once: it takes as long as the rest of the pages.
 */
export function writeCommonPasswords(): string {
  written ??= write();
  return written;
}

function write(): string {
  const hashes = [...new Set(COMMON_PASSWORDS.values().map(hashText))].sort((a, b) => a - b);
  const bytes: number[] = [];
  let before = 0;
  for (const hash of hashes) {
    let gap = hash - before;
    before = hash;
    for (; gap > 127; gap >>>= 7) bytes.push((gap & 127) | 128);
    bytes.push(gap);
  }
  return `export default "${Buffer.from(bytes).toString("base64")}";\n`;
}

// FNV-1a over UTF-16 code units, as in assets/strength.js.
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash >>> 4;
}
