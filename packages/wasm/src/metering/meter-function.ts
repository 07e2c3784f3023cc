// Adds the counting of fuel to the body of one function.
import { GuestError } from "../errors.ts";
import { BinaryReader, encodeInt32, encodeUint32 } from "../module/binary-reader.ts";
import { readValueType } from "../module/outline.ts";
import { joinBytes } from "../module/sections.ts";
import { BulkCode, Code, skipImmediates } from "./instructions.ts";

/** A branch with fewer instructions is charged with the function or loop that contains it. */
const OWN_CHARGE_MIN = 32;
/**
 * Maximum sum of such branches in a function or loop. The compiler of Go puts all branches of a function into one loop, which
 * begins again for each jump.
 */
const SHARED_UNITS_MAX = 64;
/** Blocks within blocks. */
const DEPTH_MAX = 10_000;
/** Growing memory or a table makes the engine allocate. */
const GROW_UNITS = 4_096;
const I32 = 0x7f;
const VOID_BLOCK = 0x40;

/** Types of a function as far as they are counted. */
export interface FunctionShape {
  readonly parameters: number;
  readonly results: number;
}

/** A place at which fuel is charged before the code that follows it. */
interface Charge {
  readonly at: number;
  units: number;
  /** Units of branches that are charged here. */
  shared: number;
  /** The shift that makes units of the operand on the stack; -1 for a fixed charge. */
  readonly shift: number;
}

/**
 * Returns the entry of the code section (section 5.5.13) with fuel counted in the global `fuelIndex`, a mutable i32.
 *
 * Each instruction costs one unit. The units of a function are charged when it is entered, those of a loop each time it
 * begins again, and those of a branch when it is entered, unless it is short and one of few, so that everything that can repeat is
 * paid before it runs:
 *
 * ```text
 *   charge(function)  …  loop charge(loop) … if charge(branch) … end … br_if  end  …
 * ```
 *
 * Bulk operations are charged by their length in addition, immediately before them. When fuel falls below 0 the function traps.
 * The module must be valid.
 */
export function meterFunction(
  module: Uint8Array,
  range: { readonly from: number; readonly end: number },
  shape: FunctionShape,
  fuelIndex: number,
): Uint8Array {
  const reader = new BinaryReader(module, range.from, range.end);
  const declarations = readLocals(reader);
  const locals = declarations.count;
  const bodyStart = reader.position;
  const charges = listCharges(reader, {
    at: bodyStart,
    // Locals are zeroed, parameters and results are moved.
    units: locals + shape.parameters + shape.results,
    shared: 0,
    shift: -1,
  });
  const scratch = encodeUint32(shape.parameters + locals);
  const fuel = encodeUint32(fuelIndex);
  const parts: ArrayLike<number>[] = [
    encodeUint32(declarations.groups + 1),
    module.subarray(declarations.from, bodyStart),
    [1, I32],
  ];
  let at = bodyStart;
  for (const charge of charges) {
    if (charge.units === 0 && charge.shift === -1) continue;
    parts.push(module.subarray(at, charge.at), encodeCharge(charge, fuel, scratch));
    at = charge.at;
  }
  parts.push(module.subarray(at, range.end));
  return joinBytes(parts);
}

function readLocals(reader: BinaryReader): { groups: number; from: number; count: number } {
  const groups = reader.readUint32();
  const from = reader.position;
  let count = 0;
  for (let left = groups; left > 0; left--) {
    count += reader.readUint32();
    readValueType(reader);
  }
  return { groups, from, count };
}

// The charges in the order of their places.
function listCharges(reader: BinaryReader, entry: Charge): Charge[] {
  const charges = [entry];
  const scopes: Charge[] = [];
  /** The function, or the innermost loop. */
  let scope = entry;
  /** The branch that is being counted. */
  let branch = entry;
  const begin = (): Charge => {
    const charge = { at: reader.position, units: 0, shared: 0, shift: -1 };
    charges.push(charge);
    return charge;
  };
  const close = (): void => join(branch, scope);
  while (!reader.isAtEnd) {
    const at = reader.position;
    const code = reader.readByte();
    const second = skipImmediates(reader, code);
    if (code !== Code.End && code !== Code.Else) branch.units++;
    switch (code) {
      case Code.Block:
      case Code.If:
      case Code.Loop:
        scopes.push(scope);
        if (scopes.length > DEPTH_MAX) throw tooDeep(at);
        if (code === Code.Block) break;
        close();
        branch = begin();
        if (code === Code.Loop) scope = branch;
        break;
      case Code.End:
        close();
        scope = scopes.pop() ?? scope;
        branch = begin();
        break;
      case Code.Else:
      case Code.Br:
      case Code.BrIf:
      case Code.BrTable:
      case Code.Return:
      case Code.Unreachable:
      case Code.ReturnCall:
      case Code.ReturnCallIndirect:
        close();
        branch = begin();
        break;
      case Code.MemoryGrow:
        branch.units += GROW_UNITS;
        break;
      case Code.Bulk: {
        const shift = readBulkShift(second);
        if (second === BulkCode.TableGrow) branch.units += GROW_UNITS;
        if (shift !== -1) charges.push({ at, units: 0, shared: 0, shift });
        break;
      }
    }
  }
  return charges;
}

// A short branch is charged with its scope, while those have few units together.
function join(branch: Charge, scope: Charge): void {
  if (branch === scope || branch.units >= OWN_CHARGE_MIN) return;
  if (scope.shared + branch.units > SHARED_UNITS_MAX) return;
  scope.shared += branch.units;
  scope.units += branch.units;
  branch.units = 0;
}

// Entries of tables are written one by one, bytes of memory 16 or more at once.
function readBulkShift(code: number): number {
  switch (code) {
    case BulkCode.MemoryInit:
    case BulkCode.MemoryCopy:
    case BulkCode.MemoryFill:
      return 4;
    case BulkCode.TableInit:
    case BulkCode.TableCopy:
    case BulkCode.TableGrow:
    case BulkCode.TableFill:
      return 1;
    default:
      return -1;
  }
}

// A shift by at least 1 keeps the operand non-negative: a negative one would add fuel.
function encodeCharge(
  { units, shift }: Charge,
  fuel: readonly number[],
  scratch: readonly number[],
): number[] {
  const amount =
    shift === -1
      ? [Code.I32Const, ...encodeInt32(units)]
      : [Code.LocalGet, ...scratch, Code.I32Const, shift, Code.I32ShrU];
  const keep = shift === -1 ? [] : [Code.LocalTee, ...scratch];
  return [
    ...keep,
    Code.GlobalGet,
    ...fuel,
    ...amount,
    Code.I32Sub,
    Code.LocalTee,
    ...scratch,
    Code.GlobalSet,
    ...fuel,
    Code.LocalGet,
    ...scratch,
    Code.I32Const,
    0,
    Code.I32LtS,
    Code.If,
    VOID_BLOCK,
    Code.Unreachable,
    Code.End,
  ];
}

function tooDeep(at: number): GuestError {
  return new GuestError(
    "unsupported-module",
    `The block at byte ${at} is nested more than ${DEPTH_MAX} levels deep.`,
  );
}
