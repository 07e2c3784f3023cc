// Values of a database as JSON: no value passes through a number that cannot hold it, and null, empty text and bytes differ.
import { PlatformError } from "@platform/kernel/errors";
import type { SqlAnswer, SqlValue } from "@platform/kernel/sql-child";
import { z } from "zod";

type Shown = SqlAnswer["rows"][number][number];

const TEXT_MAX = 1_048_576;

/** A value as it is shown. */
export const cellSchema = z
  .union([
    z.null(),
    z.string(),
    z.number(),
    z.strictObject({
      int: z.string().meta({ description: "an integer that a number cannot hold" }),
    }),
    z.strictObject({
      text: z.string().meta({ description: "the beginning of a long text" }),
      bytes: z.number().meta({ description: "size of the whole value" }),
    }),
    z.strictObject({
      blob: z.string().meta({ description: "bytes in base64, or their beginning" }),
      bytes: z.number().meta({ description: "size of the whole value" }),
    }),
    z.strictObject({ hidden: z.literal(true) }),
  ])
  .meta({ id: "Cell", description: "a value; `hidden` ones are of columns that are not shown" });

/** A value as JSON. */
export type Cell = z.output<typeof cellSchema>;

/** A value that is stored or compared. */
export const inputCellSchema = z
  .union([
    z.null(),
    z.string().max(TEXT_MAX),
    z.number(),
    z.strictObject({ int: z.string().regex(/^-?\d{1,40}$/, "an integer") }),
    z.strictObject({ blob: z.base64().max(TEXT_MAX) }),
  ])
  .meta({ id: "InputCell" });

/** A value of {@link inputCellSchema}. */
export type InputCell = z.output<typeof inputCellSchema>;

/** Values by column; columns that are missing are left as they are. */
export const inputCellsSchema = z.record(z.string().max(1_024), inputCellSchema);

/** Formats a value. */
export function toCell(value: Shown): Cell {
  if (value === null || typeof value === "string") return value;
  // JSON has no -0, and neither NaN nor infinity.
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "bigint") return { int: String(value) };
  if (value instanceof Uint8Array) return { blob: encode(value), bytes: value.length };
  const { head, bytes } = value;
  return typeof head === "string" ? { text: head, bytes } : { blob: encode(head), bytes };
}

/**
 * A text of SQLite that is not valid UTF-8 has other bytes than its string, in which U+FFFD stands for them: it is shown like a
 * text that is not whole, so that no row is found or changed by the wrong bytes.
 */
export function markInvalidText(cell: Cell): Cell {
  if (typeof cell !== "string" || !cell.includes("\ufffd")) return cell;
  return { text: cell, bytes: Buffer.byteLength(cell) };
}

/** True for a cell of {@link markInvalidText}. */
export function isInvalidText(cell: Cell): boolean {
  if (cell === null || typeof cell !== "object" || !("text" in cell)) return false;
  return cell.text.includes("\ufffd");
}

/** Reads a value. Throws 400 for integers of more than 64 bits. */
export function fromCell(cell: InputCell): SqlValue {
  if (cell === null || typeof cell === "string") return cell;
  // SQLite would store a number as a real.
  if (typeof cell === "number") return Number.isSafeInteger(cell) ? BigInt(cell) : cell;
  if ("blob" in cell) return new Uint8Array(Buffer.from(cell.blob, "base64"));
  const value = BigInt(cell.int);
  if (BigInt.asIntN(64, value) === value) return value;
  throw new PlatformError("validation_failed", `${cell.int} has more than 64 bits.`);
}

/** The value of a shown cell, to compare rows with it. Undefined if it is not shown whole. */
export function toInput(cell: Cell): InputCell | undefined {
  if (cell === null || typeof cell !== "object") return cell;
  if ("int" in cell) return cell;
  if ("blob" in cell && Buffer.from(cell.blob, "base64").length === cell.bytes) {
    return { blob: cell.blob };
  }
  return undefined;
}

function encode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
