// Idempotent producers of one partition: their last batches, durable and in flight.
import type { BatchHeader } from "../batch/header.ts";
import { LogError } from "../errors.ts";

/** Batches kept per producer, as many as a Kafka producer may have in flight. */
const BATCHES_KEPT = 5;

/** A batch of a producer: its sequence numbers and offsets. */
export interface SeenBatch {
  baseSequence: number;
  lastSequence: number;
  baseOffset: number;
  lastOffset: number;
}

/** State of one producer. */
interface Producer {
  epoch: number;
  lastHeardMs: number;
  /** Durable batches, at most {@link BATCHES_KEPT}. */
  batches: SeenBatch[];
  /** Batches that wait for the disk. */
  inFlight: (SeenBatch & { epoch: number })[];
}

/** A producer in a checkpoint: id, epoch, time of the last batch, durable batches. */
export type ProducerSnapshot = [number, number, number, [number, number, number, number][]];

/**
 * The producers of one partition. Above `producersMax` the least recently active one is dropped; producers idle for
 * longer than the expiry are dropped as well.
 */
export class Producers {
  readonly #producers = new Map<number, Producer>();

  get count(): number {
    return this.#producers.size;
  }

  /**
   * Checks a batch before it gets an offset. Returns the earlier batch if it is a duplicate, `undefined` if it is the
   * next one. Throws `out-of-order-sequence`, `producer-fenced`, or `duplicate-sequence` for one older than the
   * batches kept.
   */
  check(header: BatchHeader): SeenBatch | undefined {
    const producer = this.#producers.get(header.producerId);
    if (producer === undefined) {
      // An unknown producer may continue anywhere: its state may have expired.
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
      const text = `producer ${header.producerId} already sent sequence ${header.baseSequence}`;
      throw new LogError("duplicate-sequence", text);
    }
    throw outOfOrder(header, expected);
  }

  /** Adds a batch that has its offset and waits for the disk. */
  begin(header: BatchHeader, baseOffset: number, nowMs: number): void {
    let producer = this.#producers.get(header.producerId);
    if (producer === undefined) {
      producer = { epoch: header.producerEpoch, lastHeardMs: nowMs, batches: [], inFlight: [] };
      this.#producers.set(header.producerId, producer);
    }
    producer.inFlight.push({ ...seenBatch(header, baseOffset), epoch: header.producerEpoch });
  }

  /** Marks a batch as durable. One at or below the last known batch changes nothing. */
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
    if (producer.batches.length > BATCHES_KEPT) producer.batches.shift();
    producer.lastHeardMs = nowMs;
    // Map order is the order of last use, so the first idle producer is dropped.
    this.#producers.delete(header.producerId);
    this.#producers.set(header.producerId, producer);
    this.#dropOver(producersMax);
  }

  /** Drops all batches in flight after a failed write. */
  abandon(): void {
    for (const [id, producer] of this.#producers) {
      producer.inFlight = [];
      if (producer.batches.length === 0) this.#producers.delete(id);
    }
  }

  /** Drops producers that have been idle since before `beforeMs`. */
  expire(beforeMs: number): void {
    for (const [id, producer] of this.#producers) {
      if (producer.lastHeardMs < beforeMs && producer.inFlight.length === 0) {
        this.#producers.delete(id);
      }
    }
  }

  /** The durable state. */
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

  /** Restores the state of a checkpoint. */
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

// Sequence numbers have 31 bits and wrap around to 0 (Kafka's DefaultRecordBatch).
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
