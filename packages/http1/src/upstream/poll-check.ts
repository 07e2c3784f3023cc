// Finds connections that the upstream has closed: they are polled once more before they are lent again.
import type { UpstreamConnection } from "./connection.ts";

/**
 * The connections of a pool that are being polled. The first immediate runs in this turn of the event loop, the second
 * one behind the poll of the next, which has read every FIN or reset that had arrived; connections that come before the
 * first one are checked together.
 */
export class PollCheck {
  /** Connections being checked. */
  count = 0;
  readonly #onChecked: (connection: UpstreamConnection) => void;
  /** Those whose check begins at the end of this turn; null if there are none. */
  #joining: UpstreamConnection[] | null = null;

  /** `onChecked` is called once for each connection; one that was closed is `dead`. */
  constructor(onChecked: (connection: UpstreamConnection) => void) {
    this.#onChecked = onChecked;
  }

  add(connection: UpstreamConnection): void {
    this.count++;
    if (this.#joining !== null) {
      this.#joining.push(connection);
      return;
    }
    const batch = [connection];
    this.#joining = batch;
    setImmediate(() => {
      this.#joining = null;
      setImmediate(() => {
        this.count -= batch.length;
        for (const checked of batch) this.#onChecked(checked);
      });
    });
  }
}
