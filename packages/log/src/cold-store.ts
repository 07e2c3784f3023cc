// The port for the object store. Messaging implements it over S3; tests with objects in memory.

/** Bytes to upload. */
export interface ColdSource {
  bytes: number;
  /** Reads exactly `length` bytes; called for one part after another. */
  read: (position: number, length: number) => Promise<Buffer>;
}

/** An object in a listing. */
export interface ListedColdObject {
  object: string;
  bytes: number;
  /** Time of the last change, in epoch milliseconds. */
  modifiedMs: number;
}

/** A failed operation. `missing` only if the store says that the object does not exist. */
export class ColdStoreError extends Error {
  override readonly name = "ColdStoreError";
  readonly isMissing: boolean;
  /** The store's reason, for metrics: a short word. */
  readonly code: string;

  constructor(code: string, message: string, options: ErrorOptions & { isMissing?: boolean } = {}) {
    super(message, options);
    this.code = code;
    this.isMissing = options.isMissing === true;
  }
}

/** Bounds the rate at which an object is received. Its promises do not reject. */
export type ColdPace = (bytes: number) => Promise<void> | undefined;

/**
 * Objects by name. Names consist of letters, digits, `-`, `.` and `/`, are random and are never used twice. All methods
 * reject with a `ColdStoreError`.
 */
export interface ColdStore {
  /** Creates an object. What `source.read` rejects with is passed on. */
  put: (object: string, source: ColdSource) => Promise<void>;
  /**
   * Fills `target` with the bytes from `start` on. After a failure its content is undefined. `pace` is called with the number
   * of bytes of each piece that has come; the next one is not received before its promise resolves.
   */
  read: (object: string, start: number, target: Buffer, pace?: ColdPace) => Promise<void>;
  /** Removes an object, and with `isUnfinished` what an upload left; one that does not exist counts as removed. */
  remove: (object: string, isUnfinished?: boolean) => Promise<void>;
  /** Size of an object; `undefined` only if the store says that it does not exist. */
  head: (object: string) => Promise<number | undefined>;
  /** All objects whose names begin with `prefix`. */
  list: (prefix: string) => AsyncIterable<ListedColdObject>;
}
