// Faults of a file, as disks, kills and people cause them.
import {
  closeSync,
  cpSync,
  existsSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from "node:fs";

export interface FileFault {
  name: string;
  /** Changes `file`; `older` is an earlier copy, which may not exist. Returns false if it would change nothing. */
  apply(file: string, older: string, random: () => number): boolean;
}

/** All of them. */
export const FILE_FAULTS: readonly FileFault[] = [
  { name: "missing", apply: (file) => (rmSync(file), true) },
  {
    name: "emptied",
    apply: (file) => changeSize(file, 0),
  },
  { name: "truncated", apply: (file) => changeSize(file, statSync(file).size >> 1) },
  // In a SQLite file the size of pages is at 16, in other files their first line or format.
  {
    name: "header",
    apply: (file) => patch(file, statSync(file).size > 100 ? 16 : 0, Buffer.from("\x12\x34\x56")),
  },
  {
    name: "zeros",
    apply(file) {
      const { size } = statSync(file);
      return size > 8_192
        ? patch(file, (size >> 14) << 13, Buffer.alloc(4_096))
        : patch(file, size >> 1, Buffer.alloc(size >> 2));
    },
  },
  {
    name: "bits",
    apply(file, _older, random) {
      const { size } = statSync(file);
      if (size === 0) return false;
      for (let flips = 0; flips < 3; flips++) {
        const at = Math.floor(random() * size);
        const bit = 1 << Math.floor(random() * 8);
        patch(file, at, Buffer.from([readFileSync(file)[at]! ^ bit]));
      }
      return true;
    },
  },
  {
    name: "older",
    apply(file, older) {
      if (!existsSync(older) || readFileSync(older).equals(readFileSync(file))) return false;
      cpSync(older, file);
      return true;
    },
  },
];

function changeSize(file: string, bytes: number): boolean {
  if (statSync(file).size === bytes) return false;
  truncateSync(file, bytes);
  return true;
}

function patch(file: string, position: number, bytes: Buffer): boolean {
  const before = readFileSync(file).subarray(position, position + bytes.length);
  const content = bytes.subarray(0, before.length);
  if (content.equals(before)) return false;
  const descriptor = openSync(file, "r+");
  writeSync(descriptor, content, 0, content.length, position);
  closeSync(descriptor);
  return true;
}
