// Messages between the writer of a snapshot and the threads that copy pieces.
import type { SharedKey } from "../cipher.ts";
import type { Piece } from "./format.ts";

/** The repository of a thread. */
export interface CopyPlace {
  folder: string;
  /** Encrypts the pieces. */
  key: SharedKey | undefined;
}

/** A piece of a file that shall be stored. */
export interface CopyOrder {
  /** The path of the file in the snapshot. */
  path: string;
  /** The file of the disk, and the place and length of the piece in it. */
  source: string;
  at: number;
  bytes: number;
  /** The piece that the snapshot before has there: nothing is stored if it is the same. */
  known: Piece | undefined;
}

/** An order with its number. */
export interface CopyRequest extends CopyOrder {
  number: number;
}

/** A stored piece, or the reason why there is none. */
export type CopyReply =
  | { number: number; piece: Piece; isAdded: boolean }
  | { number: number; fault: string; isExpected: boolean };
