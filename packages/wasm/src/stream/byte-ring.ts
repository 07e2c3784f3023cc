// A ring of bytes in shared memory: one side is a guest's thread, which blocks; the other a thread that must not, or another
// guest's.
//
//   0        4      8       12             16             20
//   ├────────┼──────┼───────┼──────────────┼──────────────┼──────────────────────────┐
//   │written │ read │ flags │ writer's     │ reader's     │ bytes, a power of two    │
//   │ u32    │ u32  │       │ event number │ event number │                          │
//   └────────┴──────┴───────┴──────────────┴──────────────┴──────────────────────────┘
//
// `written - read` bytes wait; both wrap around at 2^32. A side that waits remembers the event number of the other one before
// it looks, so that it cannot miss what happens after the look.

import { StreamAborted } from "../guest/wasi.ts";

const WRITTEN = 0;
const READ = 1;
const FLAGS = 2;
const WRITER_EVENTS = 3;
const READER_EVENTS = 4;
const HEADER_BYTES = 20;

/** The writer has ended: no further bytes. */
const ENDED = 1;
/** The reader has gone: bytes are discarded. */
const UNREAD = 2;
/** The run has failed, or was cancelled. */
const ABORTED = 4;

/** Size of the ring between two sides. */
const RING_BYTES = 1024 * 1024;

/** One end, or both, of a ring. */
export class ByteRing {
  readonly memory: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #bytes: Uint8Array;

  constructor(memory = new SharedArrayBuffer(HEADER_BYTES + RING_BYTES)) {
    this.memory = memory;
    this.#words = new Int32Array(memory, 0, HEADER_BYTES / 4);
    this.#bytes = new Uint8Array(memory, HEADER_BYTES);
  }

  /** Makes it as new: nobody uses it any more. A wait that has ended may still be told. */
  reset(): void {
    for (const word of [WRITTEN, READ, FLAGS]) Atomics.store(this.#words, word, 0);
  }

  /** Writes as much as there is room for; returns the number of bytes. All of them if there is no reader any more. */
  tryWrite(bytes: Uint8Array): number {
    if (this.#has(UNREAD | ABORTED)) return bytes.length;
    const written = Atomics.load(this.#words, WRITTEN);
    const used = (written - Atomics.load(this.#words, READ)) >>> 0;
    const length = Math.min(bytes.length, this.#bytes.length - used);
    if (length === 0) return 0;
    const at = (written >>> 0) % this.#bytes.length;
    const first = Math.min(length, this.#bytes.length - at);
    this.#bytes.set(bytes.subarray(0, first), at);
    if (first < length) this.#bytes.set(bytes.subarray(first, length), 0);
    Atomics.store(this.#words, WRITTEN, (written + length) | 0);
    this.#tell(WRITER_EVENTS);
    return length;
  }

  /** Reads what there is; 0 bytes if nothing waits. */
  tryRead(target: Uint8Array): number {
    const read = Atomics.load(this.#words, READ);
    const waiting = (Atomics.load(this.#words, WRITTEN) - read) >>> 0;
    const length = Math.min(target.length, waiting);
    if (length === 0) return 0;
    const at = (read >>> 0) % this.#bytes.length;
    const first = Math.min(length, this.#bytes.length - at);
    target.set(this.#bytes.subarray(at, at + first), 0);
    if (first < length) target.set(this.#bytes.subarray(0, length - first), first);
    Atomics.store(this.#words, READ, (read + length) | 0);
    this.#tell(READER_EVENTS);
    return length;
  }

  /** Bytes that wait for the reader. */
  get waiting(): number {
    return (Atomics.load(this.#words, WRITTEN) - Atomics.load(this.#words, READ)) >>> 0;
  }

  /** True if a write would not wait. */
  get hasRoom(): boolean {
    return this.waiting < this.#bytes.length || this.#has(UNREAD | ABORTED);
  }

  /** No further bytes are written. */
  end(): void {
    this.#set(ENDED);
  }

  /** No further bytes are read. */
  leave(): void {
    this.#set(UNREAD);
  }

  /** Both sides give up. */
  abort(): void {
    this.#set(ABORTED);
  }

  get hasEnded(): boolean {
    return this.#has(ENDED);
  }

  get isUnread(): boolean {
    return this.#has(UNREAD);
  }

  get isAborted(): boolean {
    return this.#has(ABORTED);
  }

  /** Blocks until `isReady` after an event of the writer, or of the reader. Throws StreamAborted. */
  block(side: "writer" | "reader", isReady: () => boolean): void {
    const word = side === "writer" ? WRITER_EVENTS : READER_EVENTS;
    for (;;) {
      const seen = Atomics.load(this.#words, word);
      if (this.isAborted) throw new StreamAborted();
      if (isReady()) return;
      Atomics.wait(this.#words, word, seen);
    }
  }

  /** As `block`, for a thread with an event loop. Resolves also if the ring was aborted. */
  async wait(side: "writer" | "reader", isReady: () => boolean): Promise<void> {
    const word = side === "writer" ? WRITER_EVENTS : READER_EVENTS;
    for (;;) {
      const seen = Atomics.load(this.#words, word);
      if (this.isAborted || isReady()) return;
      const waiting = Atomics.waitAsync(this.#words, word, seen);
      if (waiting.async) await waiting.value;
    }
  }

  #has(flags: number): boolean {
    return (Atomics.load(this.#words, FLAGS) & flags) !== 0;
  }

  #set(flag: number): void {
    Atomics.or(this.#words, FLAGS, flag);
    this.#tell(WRITER_EVENTS);
    this.#tell(READER_EVENTS);
  }

  #tell(word: number): void {
    Atomics.add(this.#words, word, 1);
    Atomics.notify(this.#words, word);
  }
}
