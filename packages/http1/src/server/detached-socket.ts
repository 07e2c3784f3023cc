// The connection of a request that no client waits for: it holds the request's head, and discards the response.
import { Duplex } from "node:stream";

/** Discarded bytes need no room. */
const NEVER_FULL = 2 ** 30;

/** The connection. It has no addresses, and closes when the response is complete. */
export class DetachedSocket extends Duplex {
  /** `head` is a whole request without a body; it must contain `Connection: close`. */
  constructor(head: Buffer) {
    super({ allowHalfOpen: true, writableHighWaterMark: NEVER_FULL });
    this.push(head);
  }

  override _read(): void {
    // The head is all that there is.
  }

  override _write(_chunk: Buffer, _encoding: string, done: () => void): void {
    done();
  }

  override _final(done: () => void): void {
    done();
    this.destroy();
  }
}
