// Collects the packets that connections write in one turn, so that each writes to its socket once.

/** A connection with unwritten packets. */
export interface Flushed {
  flush(): void;
}

/** Flushes connections at the end of the current turn. */
export class FlushQueue {
  #queue: Flushed[] = [];

  add(connection: Flushed): void {
    // After all promise callbacks of this turn, which may write more.
    if (this.#queue.push(connection) === 1) process.nextTick(() => this.#flush());
  }

  #flush(): void {
    const queue = this.#queue;
    this.#queue = [];
    for (const connection of queue) connection.flush();
  }
}
