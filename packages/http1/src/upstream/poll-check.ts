// Detects connections that the upstream has closed by polling them once more before reuse.
import type { UpstreamConnection } from "./connection.ts";

/**
 * The connections of a pool that are being polled. The first immediate runs in this turn of the event loop, the second
 * one after the poll phase of the next turn, which has read every FIN or reset that had arrived. Connections added before
 * the first immediate are checked together.
 */
export class PollCheck {
  /** Connections being checked. */
  count = 0;
  readonly #onChecked: (connection: UpstreamConnection) => void;
  /** Connections whose check starts at the end of this turn, or null. */
  #joining: UpstreamConnection[] | null = null;

  /** `onChecked` is called once for each connection; closed ones are `dead`. */
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
