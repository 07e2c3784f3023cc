// Messages between the service and a thread that answers questions.
import type { SelectErrorCode } from "../model/select-errors.ts";
import type { Place } from "./language/fault.ts";
import type { SelectRequest } from "./request.ts";

/** Bytes of results on their way; a thread with more waits. */
export const RESULT_BYTES_MAX = 512 * 1024;
/** It goes on when at most this many are left. */
export const RESUME_BYTES = RESULT_BYTES_MAX / 2;

/** Bytes that were read and returned so far. */
export interface SelectStats {
  /** Of the object as it is stored. */
  scannedBytes: number;
  /** Of the object, after it was decompressed. */
  processedBytes: number;
  returnedBytes: number;
}

/** To the thread. */
export type ThreadRequest =
  | {
      readonly type: "ask";
      readonly request: SelectRequest;
      readonly sizeBytes: number;
      readonly nowMs: number;
    }
  /** The next bytes of a range; without bytes, it has ended. */
  | { readonly type: "bytes"; readonly range: number; readonly bytes: Uint8Array | undefined }
  /** Bytes of results that have been sent. */
  | { readonly type: "sent"; readonly bytes: number };

/** From the thread. */
export type ThreadResponse =
  /** Begins to read a range, of which `end` is exclusive. Ranges are numbered; there is one at a time. */
  | {
      readonly type: "open";
      readonly range: number;
      readonly start: number;
      readonly end: number;
    }
  /** Bytes that were used up. */
  | {
      readonly type: "taken";
      readonly range: number;
      readonly bytes: number;
      readonly stats: SelectStats;
    }
  /** Ends the reading of the range. */
  | { readonly type: "close" }
  /** With `isWaiting`, the thread waits until the results have been sent. */
  | {
      readonly type: "records";
      readonly bytes: Uint8Array;
      readonly stats: SelectStats;
      readonly isWaiting: boolean;
    }
  | { readonly type: "done"; readonly stats: SelectStats }
  | {
      readonly type: "failed";
      readonly code: SelectErrorCode | "InternalError";
      readonly message: string;
      readonly place: Place | undefined;
      readonly stats: SelectStats;
    };
