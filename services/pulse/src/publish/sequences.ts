// The last sequence number of each producer, durable, to drop duplicates.
import { readJson, type StateTable } from "../store/state.ts";
import type { PendingRecord } from "../store/store.ts";
import type { Tenant } from "../topic/name.ts";

interface Known {
  last: number;
  pending: Promise<void> | undefined;
}

/** Result of a claim. `pending` settles when the message with the last number has been stored or has failed. */
export type SequenceClaim =
  | {
      kind: "new";
      pendingRecords: PendingRecord[];
      settle: () => void;
      release: (why: Error) => void;
    }
  | { kind: "duplicate"; pending: Promise<void> | undefined };

/** Producers by tenant and id; at the bound the least recently active one is dropped. */
export class Sequences {
  readonly #state: StateTable;
  readonly #producersMax: number;
  readonly #producers = new Map<string, Known>();

  constructor(state: StateTable, producersMax: number) {
    this.#state = state;
    this.#producersMax = producersMax;
    for (const { key, value } of state.take("sequence")) {
      const [, tenant, producer] = key as [string, string, string];
      const last = Number(readJson(value));
      this.#producers.set(keyOf(tenant, producer), { last, pending: undefined });
    }
  }

  /** Claims a number. Append the records in the message's entry. */
  claim(tenant: Tenant, producer: string, sequence: number): SequenceClaim {
    const key = keyOf(tenant, producer);
    const known = this.#producers.get(key);
    if (known !== undefined && sequence <= known.last) {
      return { kind: "duplicate", pending: known.pending };
    }
    const stored = Promise.withResolvers<void>();
    stored.promise.catch(() => undefined);
    const claimed: Known = { last: sequence, pending: stored.promise };
    this.#producers.delete(key);
    this.#producers.set(key, claimed);
    return {
      kind: "new",
      pendingRecords: [
        this.#state.toPendingJson(["sequence", tenant, producer], sequence),
        ...this.#forgetQuiet(),
      ],
      settle: () => {
        claimed.pending = undefined;
        stored.resolve();
      },
      release: (why) => {
        // A later number may have been claimed meanwhile and then decides.
        if (this.#producers.get(key) === claimed) {
          if (known === undefined) this.#producers.delete(key);
          else this.#producers.set(key, known);
        }
        stored.reject(why);
      },
    };
  }

  #forgetQuiet(): PendingRecord[] {
    if (this.#producers.size <= this.#producersMax) return [];
    const oldest = this.#producers.keys().next();
    if (oldest.done === true) return [];
    this.#producers.delete(oldest.value);
    const [tenant, producer] = JSON.parse(oldest.value) as [string, string];
    return [this.#state.toPending(["sequence", tenant, producer], null)];
  }
}

function keyOf(tenant: Tenant, producer: string): string {
  return JSON.stringify([tenant, producer]);
}
