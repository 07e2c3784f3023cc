// The error of Parquet that cannot be read.
import { SelectError } from "../language/fault.ts";

/** A `ParquetParsingError` with its reason. */
export function unreadable(reason: string, cause?: unknown): SelectError {
  const message = `The Parquet file could not be parsed: ${reason}.`;
  return new SelectError("ParquetParsingError", message, undefined, { cause });
}
