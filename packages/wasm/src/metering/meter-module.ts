// Adds the counting of fuel to a module: the only limit of the time of a guest that runs on the calling thread.
import { GuestError } from "../errors.ts";
import { FUNCTION_KIND } from "../module/abi.ts";
import { type BinaryReader, encodeInt32, encodeUint32 } from "../module/binary-reader.ts";
import type { ModuleOutline } from "../module/outline.ts";
import { type SandboxLimits, boundSection } from "../module/sandbox.ts";
import {
  PREAMBLE,
  type Section,
  SectionId,
  encodeSection,
  joinBytes,
  listSections,
  readSection,
} from "../module/sections.ts";
import { meterFunction } from "./meter-function.ts";

/** Export of the global that holds the remaining fuel. */
export const FUEL_EXPORT = "platform:fuel";
/** Export of the start function, which the host calls itself. */
export const START_EXPORT = "platform:start";

const RESERVED_PREFIX = "platform:";
const GLOBAL_KIND = 3;
const I32 = 0x7f;
const MUTABLE = 1;
const I32_CONST = 0x41;
const END = 0x0b;
/** Sections after that of globals. */
const AFTER_GLOBALS: ReadonlySet<number> = new Set([
  SectionId.Export,
  SectionId.Start,
  SectionId.Element,
  SectionId.DataCount,
  SectionId.Code,
  SectionId.Data,
]);

/**
 * Returns a valid module with its memories and tables limited and its fuel counted, see `meterFunction`. The start function
 * is exported instead of run, so that its calls of the host find an instance. Custom sections are removed.
 */
export function meterModule(
  module: Uint8Array,
  outline: ModuleOutline,
  limits: SandboxLimits,
): Uint8Array<ArrayBuffer> {
  for (const { name, at } of outline.exports)
    if (name.startsWith(RESERVED_PREFIX))
      throw new GuestError(
        "unsupported-module",
        `The export at byte ${at} has a name that begins with \`${RESERVED_PREFIX}\`, which is reserved.`,
      );
  const parts: Uint8Array[] = [Uint8Array.from(PREAMBLE)];
  let hasGlobals = false;
  for (const section of listSections(module)) {
    const { id } = section;
    if (id === SectionId.Custom || id === SectionId.Start) continue;
    if (!hasGlobals && (id === SectionId.Global || AFTER_GLOBALS.has(id))) {
      parts.push(addGlobal(module, id === SectionId.Global ? section : undefined));
      hasGlobals = true;
      if (id === SectionId.Global) continue;
    }
    if (id === SectionId.Export) parts.push(addExports(module, section, outline));
    else if (id === SectionId.Code) parts.push(meterCode(module, section, outline));
    else parts.push(boundSection(module, section, limits));
  }
  return joinBytes(parts);
}

// Appended, so that the indexes of the module's own globals stay.
function addGlobal(module: Uint8Array, section: Section | undefined): Uint8Array {
  const fuel = [I32, MUTABLE, I32_CONST, ...encodeInt32(0), END];
  if (section === undefined) return encodeSection(SectionId.Global, [1, ...fuel]);
  return encodeSection(SectionId.Global, append(readSection(module, section), [fuel]));
}

function addExports(module: Uint8Array, section: Section, outline: ModuleOutline): Uint8Array {
  const added = [encodeExport(FUEL_EXPORT, GLOBAL_KIND, outline.globals)];
  if (outline.start !== -1) added.push(encodeExport(START_EXPORT, FUNCTION_KIND, outline.start));
  return encodeSection(SectionId.Export, append(readSection(module, section), added));
}

function encodeExport(name: string, kind: number, index: number): number[] {
  const bytes = Buffer.from(name);
  return [...encodeUint32(bytes.length), ...bytes, kind, ...encodeUint32(index)];
}

function append(vector: BinaryReader, items: readonly (readonly number[])[]): Uint8Array {
  const count = vector.readUint32();
  return joinBytes([encodeUint32(count + items.length), vector.readRest(), ...items]);
}

function meterCode(module: Uint8Array, section: Section, outline: ModuleOutline): Uint8Array {
  const reader = readSection(module, section);
  const count = reader.readUint32();
  const parts: ArrayLike<number>[] = [encodeUint32(count)];
  for (let index = 0; index < count; index++) {
    const size = reader.readUint32();
    const from = reader.position;
    reader.readBytes(size);
    const { parameters, results } = outline.functions[outline.imports.length + index]!;
    const shape = { parameters: parameters.length, results: results.length };
    const body = meterFunction(module, { from, end: reader.position }, shape, outline.globals);
    parts.push(encodeUint32(body.length), body);
  }
  return encodeSection(SectionId.Code, joinBytes(parts));
}
