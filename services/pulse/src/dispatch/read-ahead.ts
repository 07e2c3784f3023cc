// Counts data that was read from the log for one client and not yet written to its connection.
import type { Outflow } from "@platform/kernel/sockets";

/**
 * Counts it among the bytes that wait for the client, so that all clients together stay within the budget. How much a read
 * brings is only known afterwards, since batches are read whole: a read claims the most that it may bring, up to a quarter
 * of the budget, and what it brought is counted afterwards.
 *
 * Messages that can be sent at once may take all of the budget; those that would wait (for slow clients, and for higher priorities) half of
 * it, so that clients that take nothing keep nobody else from being served.
 */
export class ReadAhead {
  readonly #outflow: Outflow | undefined;
  #queuedBytes = 0;
  #isWaiting = false;

  /** Without an outflow nothing is counted. */
  constructor(outflow: Outflow | undefined) {
    this.#outflow = outflow;
  }

  /** Whether a claim waits for room. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Whether more than half of the budget is in use: then only what can be sent at once may be read. */
  get isTight(): boolean {
    return this.#outflow?.isTight === true;
  }

  /** Whether there is room, and nobody waits for it. */
  get hasRoom(): boolean {
    return this.#outflow === undefined || this.#outflow.claim(0);
  }

  /** Bytes that one read should ask for, at most `bytesMax`. */
  limitRead(bytesMax: number): number {
    return Math.min(bytesMax, this.#outflow?.windowBytes ?? bytesMax);
  }

  /** Claims what a read of at most `bytesMax` may bring. Returns the bytes to `unclaim`; undefined without room. */
  claim(bytesMax: number): number | undefined {
    if (this.#outflow === undefined) return 0;
    const bytes = Math.min(bytesMax, this.#outflow.guessBytesMax);
    return this.#outflow.claim(bytes) ? bytes : undefined;
  }

  /** As `claim`, in turn; one claim waits at a time. Undefined when the client has gone, or there was no room for 30 s. */
  async claimInTurn(bytesMax: number): Promise<number | undefined> {
    const outflow = this.#outflow;
    if (outflow === undefined) return 0;
    const bytes = Math.min(bytesMax, outflow.guessBytesMax);
    this.#isWaiting = true;
    const isClaimed = await new Promise<boolean>((resolve) => {
      outflow.claimWhenRoom(bytes, resolve);
    });
    this.#isWaiting = false;
    return isClaimed ? bytes : undefined;
  }

  /** Ends a claim; what is kept of the read was queued before. */
  unclaim(bytes: number): void {
    this.#outflow?.unclaim(bytes);
    this.#outflow?.settle();
  }

  /** Says how many bytes wait to be written. */
  countQueued(bytes: number): void {
    const change = bytes - this.#queuedBytes;
    if (change === 0) return;
    this.#queuedBytes = bytes;
    if (change > 0) this.#outflow?.addClaim(change);
    else this.unclaim(-change);
  }
}
