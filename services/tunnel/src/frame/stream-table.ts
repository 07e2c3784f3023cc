// The streams of a session by id, and what may still arrive for those that are over.
import { ResetCode, STREAM_MAX, WireError } from "./format.ts";
import { Stream, type StreamHost } from "./stream.ts";

/**
 * Ids rise from 1 and are never used again: one above the last is unknown, any other without an entry is a stream that is
 * over here, of which the peer may not know yet.
 */
export class StreamTable {
  readonly #streams = new Map<number, Stream>();
  #last = 0;
  /** Bytes that the peer may still send on streams that are over. */
  #lateBytes = 0;

  get size(): number {
    return this.#streams.size;
  }

  get(id: number): Stream | undefined {
    return this.#streams.get(id);
  }

  /** The stream, or undefined if it is over. Throws if it has never been opened. */
  find(id: number): Stream | undefined {
    if (id <= this.#last) return this.#streams.get(id);
    throw new WireError("bad_stream", `stream ${id} has never been opened`);
  }

  /** Relay: the next stream; null if all ids have been used. */
  open(host: StreamHost): Stream | null {
    return this.#last === STREAM_MAX ? null : this.#add(host, this.#last + 1);
  }

  /** Client: the stream that the relay opened. */
  accept(host: StreamHost, id: number): Stream {
    if (id > this.#last) return this.#add(host, id);
    throw new WireError("bad_stream", `OPEN with stream ${id} after ${this.#last}`);
  }

  /** A stream is over; the peer may have sent `lateBytes` before it learns of it. */
  remove(stream: Stream, lateBytes: number): void {
    this.#streams.delete(stream.id);
    this.#lateBytes += lateBytes;
  }

  /** Discards DATA for a stream that is over. */
  takeLate(id: number, size: number): void {
    this.find(id);
    this.#lateBytes -= size;
    if (this.#lateBytes >= 0) return;
    throw new WireError("late_bytes", `stream ${id} is over, and its credit has been used up`);
  }

  /** The session is lost: all streams are reset. */
  dropAll(): void {
    for (const stream of this.#streams.values()) stream.onReset(ResetCode.Cancelled, null);
    this.#streams.clear();
  }

  #add(host: StreamHost, id: number): Stream {
    const stream = new Stream(host, id);
    this.#streams.set(id, stream);
    this.#last = id;
    return stream;
  }
}
