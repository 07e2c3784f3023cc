// The sections of a module in their order (WebAssembly Core 2.0, section 5.5.2).
import { GuestError } from "../errors.ts";
import { BinaryReader, encodeUint32 } from "./binary-reader.ts";

/** The first bytes of a module: magic number and version 1. */
export const PREAMBLE: readonly number[] = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];

/** Section ids of the binary format. */
export const SectionId = {
  Custom: 0,
  Type: 1,
  Import: 2,
  Function: 3,
  Table: 4,
  Memory: 5,
  Global: 6,
  Export: 7,
  Start: 8,
  Element: 9,
  Code: 10,
  Data: 11,
  DataCount: 12,
  Tag: 13,
} as const;

/** A section: its bytes with id and size are `[start, end)` of the module, its contents `[from, end)`. */
export interface Section {
  readonly id: number;
  readonly start: number;
  readonly from: number;
  readonly end: number;
}

/** Lists the sections of a module. Throws `invalid-module`. */
export function listSections(module: Uint8Array): Section[] {
  const reader = new BinaryReader(module);
  for (const byte of PREAMBLE) {
    if (reader.isAtEnd || reader.readByte() !== byte)
      throw new GuestError(
        "invalid-module",
        "These bytes are not a WebAssembly module, version 1.",
      );
  }
  const sections: Section[] = [];
  while (!reader.isAtEnd) {
    const start = reader.position;
    const id = reader.readByte();
    const size = reader.readUint32();
    const from = reader.position;
    reader.readBytes(size);
    sections.push({ id, start, from, end: reader.position });
  }
  return sections;
}

/** A reader of the contents of a section. */
export function readSection(module: Uint8Array, { from, end }: Section): BinaryReader {
  return new BinaryReader(module, from, end);
}

/** Encodes a section. */
export function encodeSection(id: number, contents: ArrayLike<number>): Uint8Array {
  const head = [id, ...encodeUint32(contents.length)];
  const bytes = new Uint8Array(head.length + contents.length);
  bytes.set(head);
  bytes.set(contents, head.length);
  return bytes;
}

/** Joins the parts of a module. */
export function joinBytes(parts: readonly ArrayLike<number>[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
