// The functions, imports and exports that a module declares (WebAssembly Core 2.0, section 5.5).
import { GuestError } from "../errors.ts";
import { FUNCTION_KIND } from "./abi.ts";
import type { BinaryReader } from "./binary-reader.ts";
import { SectionId, listSections, readSection } from "./sections.ts";

const FUNCTION_TYPE = 0x60;
const VALUE_TYPES: Readonly<Record<number, string>> = {
  0x7f: "i32",
  0x7e: "i64",
  0x7d: "f32",
  0x7c: "f64",
  0x7b: "v128",
  0x70: "funcref",
  0x6f: "externref",
};

/** Type of a function, as names of value types. */
export interface FunctionType {
  readonly parameters: readonly string[];
  readonly results: readonly string[];
}

/** An imported function. */
interface FunctionImport {
  readonly from: string;
  readonly name: string;
  readonly type: FunctionType;
  /** Offset of the import in the module. */
  readonly at: number;
}

/** An export; `index` counts the exported kind. */
interface ExportEntry {
  readonly name: string;
  readonly kind: number;
  readonly index: number;
  readonly at: number;
}

/** The declarations of a module. */
export interface ModuleOutline {
  readonly imports: readonly FunctionImport[];
  /** Types of all functions, the imported ones first. */
  readonly functions: readonly FunctionType[];
  readonly exports: readonly ExportEntry[];
  readonly globals: number;
  /** Index of the start function, -1 without one. */
  readonly start: number;
}

/** True for the code of a value type that is not a typed reference (section 5.3.4). */
export function isValueType(code: number): boolean {
  return VALUE_TYPES[code] !== undefined;
}

/** Reads a value type. Throws `unsupported-module` for those of typed references. */
export function readValueType(reader: BinaryReader): string {
  const name = VALUE_TYPES[reader.readByte()];
  if (name === undefined)
    throw new GuestError(
      "unsupported-module",
      `The value type before byte ${reader.position} is not supported.`,
    );
  return name;
}

/** Reads the declarations of a module. Throws a GuestError, also if it imports anything but functions. */
export function readOutline(module: Uint8Array): ModuleOutline {
  let types: FunctionType[] = [];
  let imports: FunctionImport[] = [];
  let defined: FunctionType[] = [];
  let exports: ExportEntry[] = [];
  let globals = 0;
  let start = -1;
  for (const section of listSections(module)) {
    const reader = readSection(module, section);
    if (section.id === SectionId.Type) types = readVector(reader, readFunctionType);
    else if (section.id === SectionId.Import)
      imports = readVector(reader, () => readImport(reader, types));
    else if (section.id === SectionId.Function)
      defined = readVector(reader, () => findType(types, reader));
    else if (section.id === SectionId.Global) globals = reader.readUint32();
    else if (section.id === SectionId.Export) exports = readVector(reader, readExport);
    else if (section.id === SectionId.Start) start = reader.readUint32();
  }
  const functions = [...imports.map(({ type }) => type), ...defined];
  return { imports, functions, exports, globals, start };
}

/** The exported functions of a module by their names. */
export function listExportedFunctions(outline: ModuleOutline): Map<string, FunctionType> {
  return new Map(
    outline.exports
      .filter(({ kind }) => kind === FUNCTION_KIND)
      .map(({ name, index }) => [name, outline.functions[index]!]),
  );
}

/** A function type as it is written in messages: `(i32, i32) -> (i64)`. */
export function describeType({ parameters, results }: FunctionType): string {
  return `(${parameters.join(", ")}) -> (${results.join(", ")})`;
}

function readVector<T>(reader: BinaryReader, readItem: (reader: BinaryReader) => T): T[] {
  const items: T[] = [];
  for (let left = reader.readUint32(); left > 0; left--) items.push(readItem(reader));
  return items;
}

function readFunctionType(reader: BinaryReader): FunctionType {
  if (reader.readByte() !== FUNCTION_TYPE)
    throw new GuestError(
      "unsupported-module",
      `The type before byte ${reader.position} is not that of a function.`,
    );
  return {
    parameters: readVector(reader, readValueType),
    results: readVector(reader, readValueType),
  };
}

function readImport(reader: BinaryReader, types: readonly FunctionType[]): FunctionImport {
  const at = reader.position;
  const from = reader.readName();
  const name = reader.readName();
  if (reader.readByte() !== FUNCTION_KIND)
    throw new GuestError(
      "unsupported-module",
      `The import at byte ${at}, ${quoteImport(from, name)}, is not a function.`,
    );
  return { from, name, type: findType(types, reader), at };
}

function readExport(reader: BinaryReader): ExportEntry {
  const at = reader.position;
  return { name: reader.readName(), kind: reader.readByte(), index: reader.readUint32(), at };
}

function findType(types: readonly FunctionType[], reader: BinaryReader): FunctionType {
  const type = types[reader.readUint32()];
  if (type === undefined)
    throw new GuestError(
      "invalid-module",
      `There is no type with the index before byte ${reader.position}.`,
    );
  return type;
}

/** The name of an import for messages, cut to a bounded length. */
export function quoteImport(from: string, name: string): string {
  return `\`${from.slice(0, 64)}.${name.slice(0, 64)}\``;
}
