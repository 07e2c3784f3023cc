// Counts data that was read from the log for one client and not yet written to its connection.
import type { Outflow } from "@platform/kernel/sockets";

/**
 * The data counts as unsent bytes of the client, so that all clients together stay within the budget. Batches are read
 * whole, so the size of a read is only known afterwards: the maximum is claimed before the read, up to a quarter of the
 * budget, and the actual size is counted after it.
 *
 * Messages that can be sent immediately may use the whole budget. Messages that would have to wait, for a slow client or
 * behind higher priorities, may use half of it, so that clients that read nothing do not block the others.
 */
export class ReadAhead {
  readonly #outflow: Outflow | undefined;
  #queuedBytes = 0;

  /** Without an outflow, nothing is counted and every claim succeeds. */
  constructor(outflow: Outflow | undefined) {
    this.#outflow = outflow;
  }

  /** True while a claim of the client waits for room, of this or another of its subscriptions. */
  get isWaiting(): boolean {
    return this.#outflow?.isWaiting === true;
  }

  /** True if more than half of the budget is in use: then only messages that can be sent immediately may be read. */
  get isTight(): boolean {
    return this.#outflow?.isTight === true;
  }

  /** True if there is room and no claim is waiting for it. */
  get hasRoom(): boolean {
    return this.#outflow === undefined || this.#outflow.claim(0);
  }

  /** Size of the next read in bytes, at most `bytesMax`. */
  limitRead(bytesMax: number): number {
    return Math.min(bytesMax, this.#outflow?.windowBytes ?? bytesMax);
  }

  /** Claims memory for a read of at most `bytesMax`. Returns the bytes to `unclaim`; undefined without room. */
  claim(bytesMax: number): number | undefined {
    if (this.#outflow === undefined) return 0;
    const bytes = Math.min(bytesMax, this.#outflow.guessBytesMax);
    return this.#outflow.claim(bytes) ? bytes : undefined;
  }

  /**
   * As `claim`, but waits for room in order of arrival; one claim may wait at a time. Undefined if the client
   * disconnected or there was no room for 30 s.
   */
  async claimInTurn(bytesMax: number): Promise<number | undefined> {
    const outflow = this.#outflow;
    if (outflow === undefined) return 0;
    const bytes = Math.min(bytesMax, outflow.guessBytesMax);
    const isClaimed = await new Promise<boolean>((resolve) => {
      outflow.claimWhenRoom(bytes, resolve);
    });
    return isClaimed ? bytes : undefined;
  }

  /** Ends a claim. The messages that were read must have been counted by `countQueued` before. */
  unclaim(bytes: number): void {
    this.#outflow?.unclaim(bytes);
    this.#outflow?.settle();
  }

  /** Sets the number of bytes that wait to be written. */
  countQueued(bytes: number): void {
    const change = bytes - this.#queuedBytes;
    if (change === 0) return;
    this.#queuedBytes = bytes;
    if (change > 0) this.#outflow?.addClaim(change);
    else this.unclaim(-change);
  }
}
