// Names and sizes of objects, apart from the format's schemas: the threads that copy pieces start in a quarter of the time without them.
import { hash } from "node:crypto";

/** The folder of objects. */
export const OBJECT_FOLDER = "data";
/** Bytes of a piece of a file before encryption, at most. */
export const PIECE_BYTES_MAX = 8 * 1024 * 1024;
/** Bytes of an object, at most: a piece and what encryption adds. */
export const OBJECT_BYTES_MAX = PIECE_BYTES_MAX + 64 * 1024;

/** The name of an object. */
export function nameObject(sha256: string): string {
  return `${OBJECT_FOLDER}/${sha256.slice(0, 2)}/${sha256}`;
}

/** SHA-256 in hex. */
export function digestBytes(bytes: Uint8Array): string {
  return hash("sha256", bytes, "hex");
}
