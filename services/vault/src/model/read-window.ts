// The share of memory that one consumer of stored bytes has.

/**
 * A consumer's share of memory. Readers take room for the bytes that they are about to read. The consumer of a chunk gives
 * its room back after it has passed the chunk on or dropped it.
 */
export interface ReadWindow {
  /** Bytes that the next read may return. Below the size of a frame, readers do not read ahead. */
  readonly bytes: number;
  /** A wait for room has failed, so the consumer receives no more bytes. A later rejection is not a sign of damage. */
  readonly isEnded: boolean;
  /** Takes room for a read; false if there is not enough. */
  tryTake(bytes: number): boolean;
  /**
   * Takes room for a read, in turn; `undefined` if it is available immediately. Rejects after too long a wait, and when the
   * consumer has gone. Callers must not hold room while they wait: the waits could block each other.
   */
  take(bytes: number): Promise<void> | undefined;
  /** Gives room back. */
  give(bytes: number): void;
}
