// Messages waiting for a subscription: higher priority first, then in log order.
import type { Message } from "../message/message.ts";

interface Level {
  priority: number;
  messages: Message[];
  head: number;
}

/** A queue by priority, bounded by its users. */
export class PriorityQueue {
  /** Descending. There is almost always one level. */
  readonly #levels: Level[] = [];
  #count = 0;
  #bytes = 0;

  get count(): number {
    return this.#count;
  }

  /** Payload bytes of the waiting messages. */
  get bytes(): number {
    return this.#bytes;
  }

  push(message: Message): void {
    this.#level(message.priority).messages.push(message);
    this.#count++;
    this.#bytes += message.payload.length;
  }

  /** Returns a message to its place in log order among those of its priority. */
  putBack(message: Message): void {
    const level = this.#level(message.priority);
    let at = level.head;
    while (at < level.messages.length && isBefore(level.messages[at]!, message)) at++;
    level.messages.splice(at, 0, message);
    this.#count++;
    this.#bytes += message.payload.length;
  }

  /** Removes and returns the next message; `undefined` if there is none. */
  shift(): Message | undefined {
    const level = this.#levels[0];
    if (level === undefined) return undefined;
    const message = level.messages[level.head++]!;
    if (level.head === level.messages.length) this.#levels.shift();
    else if (level.head > 1_024 && level.head * 2 > level.messages.length) {
      level.messages.splice(0, level.head);
      level.head = 0;
    }
    this.#count--;
    this.#bytes -= message.payload.length;
    return message;
  }

  /** Removes a message; false if it is not in the queue. */
  remove(partition: number, offset: number): boolean {
    for (const [index, level] of this.#levels.entries()) {
      for (let at = level.head; at < level.messages.length; at++) {
        const message = level.messages[at]!;
        if (message.offset !== offset || message.partition !== partition) continue;
        level.messages.splice(at, 1);
        if (level.head === level.messages.length) this.#levels.splice(index, 1);
        this.#count--;
        this.#bytes -= message.payload.length;
        return true;
      }
    }
    return false;
  }

  clear(): void {
    this.#levels.length = 0;
    this.#count = 0;
    this.#bytes = 0;
  }

  #level(priority: number): Level {
    const first = this.#levels[0];
    if (first?.priority === priority) return first;
    let at = 0;
    while (at < this.#levels.length && this.#levels[at]!.priority > priority) at++;
    const found = this.#levels[at];
    if (found?.priority === priority) return found;
    const level = { priority, messages: [], head: 0 };
    this.#levels.splice(at, 0, level);
    return level;
  }
}

// Messages of different partitions have no order; they stay in order of arrival.
function isBefore(waiting: Message, back: Message): boolean {
  return waiting.partition === back.partition && waiting.offset < back.offset;
}
