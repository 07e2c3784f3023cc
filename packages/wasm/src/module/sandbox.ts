// Rewrites a module so that its memories and tables cannot grow past a limit, whatever it declares.
//
//   module   = "\0asm" 01 00 00 00 section*
//   section  = id:byte size:u32 contents           (WebAssembly Core 2.0, section 5.5.2)
//   limits   = 00 min:u32 | 01 min:u32 max:u32     (section 5.3.7)
//
// Reads only the sections of imports, tables, memories and exports; the engine validates the rest when it compiles.
import { GuestError } from "../errors.ts";
import { FUNCTION_KIND, type GuestAbi, WASI_FUNCTIONS, WASI_MODULE, findAbi } from "./abi.ts";
import { type BinaryReader, encodeUint32 } from "./binary-reader.ts";
import {
  PREAMBLE,
  type Section,
  SectionId,
  encodeSection,
  joinBytes,
  listSections,
  readSection,
} from "./sections.ts";

const FUNCTION_REFERENCE = 0x70;
const EXTERNAL_REFERENCE = 0x6f;
/** Bytes of a page of memory. */
export const PAGE_BYTES = 65_536;

/** Limits of a guest. */
export interface SandboxLimits {
  /** All memories of a guest together, in pages of 64 KiB. */
  memoryPagesMax: number;
  /** All tables of a guest together. */
  tableEntriesMax: number;
}

/** A module that is safe to instantiate. */
export interface SandboxedModule {
  bytes: Uint8Array<ArrayBuffer>;
  abi: GuestAbi;
}

/** Validates the imports and exports of a module and limits its memories and tables. Throws a GuestError. */
export function sandboxModule(module: Uint8Array, limits: SandboxLimits): SandboxedModule {
  const parts: Uint8Array[] = [Uint8Array.from(PREAMBLE)];
  const exports = new Map<string, number>();
  for (const section of listSections(module)) {
    const contents = readSection(module, section);
    if (section.id === SectionId.Import) checkImports(contents);
    if (section.id === SectionId.Export) readExports(contents, exports);
    parts.push(boundSection(module, section, limits));
  }
  return { bytes: joinBytes(parts), abi: findAbi(exports) };
}

/** The bytes of a section with its memories or tables limited; all other sections are returned as they are. */
export function boundSection(
  module: Uint8Array,
  section: Section,
  limits: SandboxLimits,
): Uint8Array {
  const { id, start, end } = section;
  const contents = readSection(module, section);
  if (id === SectionId.Memory) return encodeSection(id, boundMemories(contents, limits));
  if (id === SectionId.Table) return encodeSection(id, boundTables(contents, limits));
  return module.subarray(start, end);
}

function checkImports(section: BinaryReader): void {
  for (let left = section.readUint32(); left > 0; left--) {
    const from = section.readName();
    const name = section.readName();
    if (section.readByte() !== FUNCTION_KIND)
      throw new GuestError(
        "unsupported-module",
        `The module imports ${quote(from, name)}, which is not a function.`,
      );
    section.readUint32();
    if (from !== WASI_MODULE || !WASI_FUNCTIONS.has(name))
      throw new GuestError(
        "unsupported-module",
        `The module imports ${quote(from, name)}; guests may import only functions of ${WASI_MODULE}.`,
      );
  }
}

function readExports(section: BinaryReader, exports: Map<string, number>): void {
  for (let left = section.readUint32(); left > 0; left--) {
    const name = section.readName();
    exports.set(name, section.readByte());
    section.readUint32();
  }
}

function boundMemories(section: BinaryReader, limits: SandboxLimits): number[] {
  const count = section.readUint32();
  const contents = encodeUint32(count);
  let left = limits.memoryPagesMax;
  for (let index = 0; index < count; index++) {
    const bounded = boundLimits(section, left, "memory", "pages of 64 KiB");
    // The maximum of this memory is no longer available to later ones.
    left -= bounded.max;
    contents.push(...bounded.encoded);
  }
  return contents;
}

function boundTables(section: BinaryReader, limits: SandboxLimits): number[] {
  const count = section.readUint32();
  const contents = encodeUint32(count);
  let left = limits.tableEntriesMax;
  for (let index = 0; index < count; index++) {
    const type = section.readByte();
    if (type !== FUNCTION_REFERENCE && type !== EXTERNAL_REFERENCE)
      throw new GuestError(
        "unsupported-module",
        "The module has a table of a type other than funcref and externref.",
      );
    const bounded = boundLimits(section, left, "table", "entries");
    left -= bounded.max;
    contents.push(type, ...bounded.encoded);
  }
  return contents;
}

function boundLimits(
  section: BinaryReader,
  most: number,
  what: string,
  unit: string,
): { encoded: number[]; max: number } {
  const flags = section.readByte();
  if (flags > 1)
    throw new GuestError("unsupported-module", `The module has a shared or 64-bit ${what}.`);
  const min = section.readUint32();
  const max = Math.min(flags === 1 ? section.readUint32() : most, most);
  if (min > most)
    throw new GuestError(
      "memory-limit",
      `The module requires ${min} ${unit} of ${what}; the limit is ${most}.`,
    );
  return { encoded: [1, ...encodeUint32(min), ...encodeUint32(max)], max };
}

function quote(from: string, name: string): string {
  return `\`${from.slice(0, 64)}.${name.slice(0, 64)}\``;
}
