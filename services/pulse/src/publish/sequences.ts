// The last sequence number of each producer, durable, to drop duplicates.
import { readJson, type StateTable } from "../store/state.ts";
import type { PendingRecord } from "../store/store.ts";
import type { Tenant } from "../topic/name.ts";

/** A claim whose message is not stored yet. `stored` rejects if it could not be stored. */
interface InFlight {
  number: number;
  stored: Promise<void>;
}

/** A producer. */
interface Known {
  /** The highest number that is stored. */
  last: number;
  /** Numbers of calls that were not stored, or not yet: they are new when they come again, also after a higher one. */
  missing: Set<number>;
  /** In the order of the claims. */
  inFlight: InFlight[];
}

/** Stored form: the last number, or an object with ranges `[from, to]` of numbers that are missing. */
type StoredSequence = number | { last: number; missing: [from: number, to: number][] };

/** Missing numbers of a producer that are remembered: the highest. */
const MISSING_MAX = 100;

/** Result of a claim. `stored` settles when the message with the number, or with a higher one, was stored or has failed. */
export type SequenceClaim =
  | {
      kind: "new";
      stored: Promise<void>;
      /** Settles with the producer's number before this one: it must be stored first, so that none is skipped. */
      after: Promise<void> | undefined;
      /** Records of the message's entry; called immediately before it is appended. */
      toPending: () => PendingRecord[];
      settle: () => void;
      release: (why: Error) => void;
    }
  | { kind: "duplicate"; stored: Promise<void> };

const STORED = Promise.resolve();

/** Producers by tenant and id; at the bound the least recently active one is dropped. */
export class Sequences {
  readonly #state: StateTable;
  readonly #producersMax: number;
  /** The least recently active first. */
  readonly #producers = new Map<string, Known>();

  constructor(state: StateTable, producersMax: number) {
    this.#state = state;
    this.#producersMax = producersMax;
    for (const { key, value } of state.take("sequence")) {
      const [, tenant, producer] = key as [string, string, string];
      const stored = readJson(value) as StoredSequence;
      const { last, missing } = typeof stored === "object" ? stored : { last: stored, missing: [] };
      const known: Known = { last, missing: new Set(), inFlight: [] };
      for (const [from, to] of missing) {
        for (let number = from; number <= to; number++) known.missing.add(number);
      }
      this.#producers.set(keyOf(tenant, producer), known);
    }
  }

  /**
   * Notes a number that a call has brought, before anything can fail: it is new until it is stored, whichever call claims
   * first and whatever becomes of this one.
   */
  announce(tenant: Tenant, producer: string, sequence: number): void {
    const key = keyOf(tenant, producer);
    const known = this.#producers.get(key) ?? createKnown();
    if (sequence <= known.last) return;
    known.missing.add(sequence);
    trim(known.missing);
    this.#producers.set(key, known);
    this.#forgetQuiet();
  }

  /** Claims a number. `own`: the promises of the call's other claims, for which it does not wait. */
  claim(
    tenant: Tenant,
    producer: string,
    sequence: number,
    own: ReadonlySet<Promise<unknown>>,
  ): SequenceClaim {
    const key = keyOf(tenant, producer);
    const known = this.#producers.get(key) ?? createKnown();
    const first = findFirst(known, sequence);
    if (first !== undefined) return { kind: "duplicate", stored: first };
    const { promise: stored, resolve, reject } = Promise.withResolvers<void>();
    stored.catch(() => undefined);
    const before = known.inFlight.findLast((other) => !own.has(other.stored));
    const claimed: InFlight = { number: sequence, stored };
    known.inFlight.push(claimed);
    this.#producers.delete(key);
    this.#producers.set(key, known);
    const leave = (): void => void known.inFlight.splice(known.inFlight.indexOf(claimed), 1);
    return {
      kind: "new",
      stored,
      after: before?.stored,
      toPending: () => [
        this.#state.toPendingJson(["sequence", tenant, producer], toStored(known, sequence, own)),
        ...this.#forgetQuiet(),
      ],
      settle: () => {
        leave();
        known.last = Math.max(known.last, sequence);
        known.missing.delete(sequence);
        resolve();
      },
      release: (why) => {
        leave();
        reject(why);
      },
    };
  }

  #forgetQuiet(): PendingRecord[] {
    if (this.#producers.size <= this.#producersMax) return [];
    for (const [key, { inFlight }] of this.#producers) {
      if (inFlight.length > 0) continue;
      this.#producers.delete(key);
      const [tenant, producer] = JSON.parse(key) as [string, string];
      return [this.#state.toPending(["sequence", tenant, producer], null)];
    }
    return [];
  }
}

function createKnown(): Known {
  return { last: Number.NEGATIVE_INFINITY, missing: new Set(), inFlight: [] };
}

function trim(missing: Set<number>): void {
  while (missing.size > MISSING_MAX) missing.delete(Math.min(...missing));
}

/** The promise of the message that a number is a duplicate of; undefined if the number is new. */
function findFirst(
  { last, missing, inFlight }: Known,
  sequence: number,
): Promise<void> | undefined {
  const same = inFlight.find(({ number }) => number === sequence);
  if (same !== undefined) return same.stored;
  if (missing.has(sequence)) return undefined;
  const higher = inFlight.find(({ number }) => number > sequence);
  return higher?.stored ?? (sequence <= last ? STORED : undefined);
}

/** The state after the entry of a call, which stores its own claims together. */
function toStored(
  { last, missing, inFlight }: Known,
  sequence: number,
  own: ReadonlySet<Promise<unknown>>,
): StoredSequence {
  const highest = Math.max(last, sequence);
  const stored = new Set(
    inFlight.filter((each) => own.has(each.stored)).map(({ number }) => number),
  );
  const ranges: [from: number, to: number][] = [];
  for (const number of Array.from(missing).sort((one, other) => one - other)) {
    if (stored.has(number) || number >= highest) continue;
    const range = ranges.at(-1);
    if (range?.[1] === number - 1) range[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.length === 0 ? highest : { last: highest, missing: ranges };
}

function keyOf(tenant: Tenant, producer: string): string {
  return JSON.stringify([tenant, producer]);
}
