// The instructions whose fuel is counted, with the immediates that follow their codes (WebAssembly Core 2.0, section 5.4).
//
// An instruction that is not listed here is refused: threads, garbage collection, exceptions, typed function references and
// relaxed SIMD, whose results differ between machines.
import { GuestError } from "../errors.ts";
import type { BinaryReader } from "../module/binary-reader.ts";
import { isValueType, readValueType } from "../module/outline.ts";

/** Codes with a meaning of their own for the counter. */
export const Code = {
  Unreachable: 0x00,
  Block: 0x02,
  Loop: 0x03,
  If: 0x04,
  Else: 0x05,
  End: 0x0b,
  Br: 0x0c,
  BrIf: 0x0d,
  BrTable: 0x0e,
  Return: 0x0f,
  ReturnCall: 0x12,
  ReturnCallIndirect: 0x13,
  GlobalGet: 0x23,
  GlobalSet: 0x24,
  LocalGet: 0x20,
  LocalSet: 0x21,
  LocalTee: 0x22,
  MemoryGrow: 0x40,
  I32Const: 0x41,
  I32LtS: 0x48,
  I32Sub: 0x6b,
  I32ShrU: 0x76,
  /** Prefix of saturating conversions and bulk operations. */
  Bulk: 0xfc,
  /** Prefix of vector instructions. */
  Vector: 0xfd,
} as const;

/** Operations under the prefix `Bulk` that take a number of bytes or entries as their last operand. */
export const BulkCode = {
  MemoryInit: 8,
  MemoryCopy: 10,
  MemoryFill: 11,
  TableInit: 12,
  TableCopy: 14,
  TableGrow: 15,
  TableFill: 17,
} as const;

const VOID_BLOCK = 0x40;
/** Further instructions without immediates: control, `drop`, `select`, `ref.is_null`. */
const PLAIN: ReadonlySet<number> = new Set([
  Code.Unreachable,
  0x01,
  Code.Else,
  Code.End,
  Code.Return,
  0x1a,
  0x1b,
  0xd1,
]);
/** Bit of a memory argument that is followed by the index of a memory. */
const HAS_MEMORY_INDEX = 0x40;

/** Names of unsupported instructions, for messages. */
const UNSUPPORTED: Readonly<Record<number, string>> = {
  0x06: "try (exceptions)",
  0x07: "catch (exceptions)",
  0x08: "throw (exceptions)",
  0x09: "rethrow (exceptions)",
  0x0a: "throw_ref (exceptions)",
  0x14: "call_ref (typed function references)",
  0x15: "return_call_ref (typed function references)",
  0x18: "delegate (exceptions)",
  0x19: "catch_all (exceptions)",
  0x1f: "try_table (exceptions)",
  0xfb: "0xfb (garbage collection)",
  0xfe: "0xfe (threads)",
};

/**
 * Passes the immediates of an instruction whose code has been read. Returns the second code of one with a prefix, otherwise
 * 0. Throws `unsupported-module` for an instruction that is not counted.
 */
export function skipImmediates(reader: BinaryReader, code: number): number {
  // Everything between has no immediates: comparisons, arithmetic, conversions and sign extensions.
  if (code >= 0x45 && code <= 0xc4) return 0;
  if (PLAIN.has(code)) return 0;
  if (code >= 0x28 && code <= 0x3e) return skipMemoryArgument(reader);
  switch (code) {
    case Code.Block:
    case Code.Loop:
    case Code.If:
      return skipBlockType(reader);
    case Code.Br:
    case Code.BrIf:
    case 0x10:
    case Code.ReturnCall:
    case Code.LocalGet:
    case Code.LocalSet:
    case Code.LocalTee:
    case Code.GlobalGet:
    case Code.GlobalSet:
    case 0x25:
    case 0x26:
    case 0x3f:
    case Code.MemoryGrow:
    case 0xd2:
      return skipIndexes(reader, 1);
    case 0x11:
    case Code.ReturnCallIndirect:
      return skipIndexes(reader, 2);
    case Code.BrTable:
      return skipIndexes(reader, reader.readUint32() + 1);
    case 0x1c:
      for (let left = reader.readUint32(); left > 0; left--) readValueType(reader);
      return 0;
    case Code.I32Const:
      reader.skipInteger(32);
      return 0;
    case 0x42:
      reader.skipInteger(64);
      return 0;
    case 0x43:
      reader.readBytes(4);
      return 0;
    case 0x44:
      reader.readBytes(8);
      return 0;
    case 0xd0:
      reader.skipInteger(33);
      return 0;
    case Code.Bulk:
      return skipBulk(reader);
    case Code.Vector:
      return skipVector(reader);
    default:
      throw unsupported(reader, UNSUPPORTED[code] ?? `0x${code.toString(16).padStart(2, "0")}`);
  }
}

function skipIndexes(reader: BinaryReader, count: number): number {
  for (let left = count; left > 0; left--) reader.readUint32();
  return 0;
}

function skipMemoryArgument(reader: BinaryReader): number {
  const alignment = reader.readUint32();
  if ((alignment & HAS_MEMORY_INDEX) !== 0) reader.readUint32();
  reader.readUint32();
  return 0;
}

function skipBlockType(reader: BinaryReader): number {
  const first = reader.readByte();
  if (first === VOID_BLOCK || isValueType(first)) return 0;
  if (first > VOID_BLOCK && first < 0x80) throw unsupported(reader, "block of such a type");
  // The index of a type, a signed number of 33 bits (section 5.4.1).
  if (first >= 0x80) reader.skipInteger(26);
  return 0;
}

function skipBulk(reader: BinaryReader): number {
  const code = reader.readUint32();
  if (code <= 7) return code;
  if (code > BulkCode.TableFill) throw unsupported(reader, `0xfc ${code}`);
  const isPair =
    code === BulkCode.MemoryInit ||
    code === BulkCode.MemoryCopy ||
    code === BulkCode.TableInit ||
    code === BulkCode.TableCopy;
  skipIndexes(reader, isPair ? 2 : 1);
  return code;
}

function skipVector(reader: BinaryReader): number {
  const code = reader.readUint32();
  if (code > 0xff) throw unsupported(reader, `0xfd ${code} (relaxed SIMD)`);
  if (code <= 11 || code === 92 || code === 93) skipMemoryArgument(reader);
  else if (code === 12 || code === 13) reader.readBytes(16);
  else if (code >= 21 && code <= 34) reader.readByte();
  else if (code >= 84 && code <= 91) {
    skipMemoryArgument(reader);
    reader.readByte();
  }
  return code;
}

function unsupported(reader: BinaryReader, name: string): GuestError {
  return new GuestError(
    "unsupported-module",
    `The instruction ${name} before byte ${reader.position} is not supported.`,
  );
}
