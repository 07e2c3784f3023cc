// Idempotent producers of one partition: which batches were seen, durable and still in flight.
import type { BatchHeader } from "../batch/header.ts";
import { LogError } from "../errors.ts";

/** Batches remembered per producer, as many as a Kafka producer may have in flight. */
const batchesKept = 5;

/** A batch of a producer: its sequence numbers and its offsets. */
export type SeenBatch = {
  baseSequence: number;
  lastSequence: number;
  baseOffset: number;
  lastOffset: number;
};

/** What is kept of one producer; `batches` are durable, `inFlight` wait for the disk. */
type Producer = {
  epoch: number;
  lastHeardMs: number;
  batches: SeenBatch[];
  inFlight: (SeenBatch & { epoch: number })[];
};

/** A producer as checkpoints keep it: id, epoch, last heard of, durable batches. */
export type ProducerSnapshot = [number, number, number, [number, number, number, number][]];

/**
 * The producer state of one partition. Bounded: above `producersMax` the one that was silent the
 * longest goes, and so does every one silent for longer than the expiry.
 */
export class Producers {
  readonly #producers = new Map<number, Producer>();

  get count(): number {
    return this.#producers.size;
  }

  /**
   * Judges a batch before it gets an offset. Returns the earlier batch if it is a duplicate,
   * undefined if it is the next one. Throws `out-of-order-sequence`, `producer-fenced`, or
   * `duplicate-sequence` for one older than the batches that are remembered.
   */
  check(header: BatchHeader): SeenBatch | undefined {
    const producer = this.#producers.get(header.producerId);
    if (producer === undefined) {
      // A producer that is not known (any more) may go on where it was: its state has expired.
      return undefined;
    }
    const epoch = producer.inFlight.at(-1)?.epoch ?? producer.epoch;
    if (header.producerEpoch < epoch) {
      throw new LogError("producer-fenced", `producer ${header.producerId} has a newer epoch`);
    }
    if (header.producerEpoch > epoch) {
      if (header.baseSequence === 0) return undefined;
      throw outOfOrder(header, 0);
    }
    const lastSequence = lastSequenceOf(header);
    const seen = [...producer.batches, ...producer.inFlight.filter((b) => b.epoch === epoch)];
    for (const batch of seen) {
      if (batch.baseSequence === header.baseSequence && batch.lastSequence === lastSequence) {
        return batch;
      }
    }
    const last = seen.at(-1);
    if (last === undefined) return undefined;
    const expected = nextSequence(last.lastSequence);
    if (header.baseSequence === expected) return undefined;
    if (header.baseSequence < expected && header.baseSequence >= 0) {
      const text = `producer ${header.producerId} sent sequence ${header.baseSequence} before`;
      throw new LogError("duplicate-sequence", text);
    }
    throw outOfOrder(header, expected);
  }

  /** Notes a batch that got its offset and now waits for the disk. */
  begin(header: BatchHeader, baseOffset: number, nowMs: number): void {
    let producer = this.#producers.get(header.producerId);
    if (producer === undefined) {
      producer = { epoch: header.producerEpoch, lastHeardMs: nowMs, batches: [], inFlight: [] };
      this.#producers.set(header.producerId, producer);
    }
    producer.inFlight.push({ ...seenBatch(header, baseOffset), epoch: header.producerEpoch });
  }

  /** Notes a batch that is durable. One at or below what is already known changes nothing. */
  settle(header: BatchHeader, baseOffset: number, nowMs: number, producersMax: number): void {
    const producer = this.#producers.get(header.producerId) ?? {
      epoch: header.producerEpoch,
      lastHeardMs: nowMs,
      batches: [],
      inFlight: [],
    };
    const waiting = producer.inFlight.findIndex((batch) => batch.baseOffset === baseOffset);
    if (waiting >= 0) producer.inFlight.splice(waiting, 1);
    const last = producer.batches.at(-1);
    if (last !== undefined && last.baseOffset >= baseOffset) return;
    if (header.producerEpoch !== producer.epoch) {
      producer.epoch = header.producerEpoch;
      producer.batches = [];
    }
    producer.batches.push(seenBatch(header, baseOffset));
    if (producer.batches.length > batchesKept) producer.batches.shift();
    producer.lastHeardMs = nowMs;
    // Map order is the order of last use, so the first idle one is the one to drop.
    this.#producers.delete(header.producerId);
    this.#producers.set(header.producerId, producer);
    this.#dropOver(producersMax);
  }

  /** Forgets everything that waits for the disk: it failed. */
  abandon(): void {
    for (const [id, producer] of this.#producers) {
      producer.inFlight = [];
      if (producer.batches.length === 0) this.#producers.delete(id);
    }
  }

  /** Forgets producers that were silent since before `beforeMs`. */
  expire(beforeMs: number): void {
    for (const [id, producer] of this.#producers) {
      if (producer.lastHeardMs < beforeMs && producer.inFlight.length === 0) {
        this.#producers.delete(id);
      }
    }
  }

  /** What is durable. */
  snapshot(): ProducerSnapshot[] {
    const snapshots: ProducerSnapshot[] = [];
    for (const [id, { epoch, lastHeardMs, batches }] of this.#producers) {
      if (batches.length === 0) continue;
      const rows = batches.map((b): [number, number, number, number] => [
        b.baseSequence,
        b.lastSequence,
        b.baseOffset,
        b.lastOffset,
      ]);
      snapshots.push([id, epoch, lastHeardMs, rows]);
    }
    return snapshots;
  }

  /** Takes over what a checkpoint kept. */
  static restore(snapshots: readonly ProducerSnapshot[]): Producers {
    const producers = new Producers();
    for (const [id, epoch, lastHeardMs, rows] of snapshots) {
      const batches = rows.map(([baseSequence, lastSequence, baseOffset, lastOffset]) => ({
        baseSequence,
        lastSequence,
        baseOffset,
        lastOffset,
      }));
      producers.#producers.set(id, { epoch, lastHeardMs, batches, inFlight: [] });
    }
    return producers;
  }

  #dropOver(producersMax: number): void {
    if (this.#producers.size <= producersMax) return;
    for (const [id, producer] of this.#producers) {
      if (producer.inFlight.length > 0) continue;
      this.#producers.delete(id);
      if (this.#producers.size <= producersMax) return;
    }
  }
}

function seenBatch(header: BatchHeader, baseOffset: number): SeenBatch {
  return {
    baseSequence: header.baseSequence,
    lastSequence: lastSequenceOf(header),
    baseOffset,
    lastOffset: baseOffset + header.lastOffsetDelta,
  };
}

// Sequence numbers are 31 bits wide and begin again at 0 (Kafka's DefaultRecordBatch).
function lastSequenceOf(header: BatchHeader): number {
  return (header.baseSequence + header.lastOffsetDelta) % 2147483648;
}

function nextSequence(sequence: number): number {
  return (sequence + 1) % 2147483648;
}

function outOfOrder(header: BatchHeader, expected: number): LogError {
  const text = `producer ${header.producerId} sent sequence ${header.baseSequence}, expected ${expected}`;
  return new LogError("out-of-order-sequence", text);
}
