// The message id and the sequence number of a message, until its entry is stored or has failed.
import type { PendingRecord } from "../store/store.ts";
import type { FirstPlace } from "./message-ids.ts";

/** One of the two. */
export interface Claim {
  /** Settles with what must be stored before. */
  after: Promise<unknown> | undefined;
  toPending: () => readonly PendingRecord[];
  settle: (place: FirstPlace) => void;
  release: (why: Error) => void;
}

/** The claims of a message. They end once: later calls have no effect. */
export class Claims {
  readonly #open: Claim[] = [];

  add(claim: Claim): void {
    this.#open.push(claim);
  }

  /** Settle with what must be stored before. */
  get after(): readonly Promise<unknown>[] {
    return this.#open.flatMap(({ after }) => (after === undefined ? [] : [after]));
  }

  /** Records of the message's entry; called immediately before the append. */
  toPending(): PendingRecord[] {
    return this.#open.flatMap(({ toPending }) => toPending());
  }

  /** The entry is stored. `place`: of a message that can be consumed now. */
  settle(place: FirstPlace): void {
    for (const claim of this.#open.splice(0)) claim.settle(place);
  }

  /** The entry has failed: id and number are free again. */
  release(why: Error): void {
    for (const claim of this.#open.splice(0)) claim.release(why);
  }
}
