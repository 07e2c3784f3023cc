// The queue where the browser has no IndexedDB, as in some private windows: it ends with the page.
import { PulseClientError, type Problem } from "../errors.ts";
import { randomId, type QueuedMessage } from "../message.ts";
import type { Outbox, QueueHead, QueueLimits } from "./outbox.ts";

export class MemoryOutbox implements Outbox {
  readonly isDurable = false;
  readonly #waiting = new Map<number, QueuedMessage>();
  readonly #aside = new Map<number, QueuedMessage>();
  readonly #cursors = new Map<string, string>();
  #producerId = randomId();
  #subject: string | undefined;
  #lastKey = 0;
  #bytes = 0;

  async add(
    message: Omit<QueuedMessage, "key">,
    { messagesMax, bytesMax, whenFull }: QueueLimits,
  ): Promise<{ dropped: QueuedMessage[] }> {
    const isFull = (): boolean =>
      this.#waiting.size + this.#aside.size >= messagesMax ||
      this.#bytes + message.bytes > bytesMax;
    const dropped: QueuedMessage[] = [];
    while (isFull()) {
      const [oldest] = [...this.#aside.values(), ...this.#waiting.values()];
      if (whenFull === "refuse" || oldest === undefined) {
        throw new PulseClientError("queue_full", "The queue is full.");
      }
      this.#remove(oldest.key);
      dropped.push(oldest);
    }
    this.#put(message);
    return { dropped };
  }

  async head(messagesMax: number, bytesMax: number): Promise<QueueHead> {
    const messages: QueuedMessage[] = [];
    let bytes = 0;
    for (const message of this.#waiting.values()) {
      bytes += message.bytes;
      if (messages.length === messagesMax || (messages.length > 0 && bytes > bytesMax)) break;
      messages.push(message);
    }
    return { producerId: this.#producerId, subject: this.#subject, messages };
  }

  async settle(keys: readonly number[]): Promise<void> {
    for (const key of keys) this.#remove(key);
  }

  async reject(key: number, problem: Problem): Promise<void> {
    const message = this.#waiting.get(key);
    if (message === undefined) return;
    this.#waiting.delete(key);
    this.#aside.set(key, { ...message, problem });
  }

  async retry(messageId: string | undefined): Promise<number> {
    const chosen = [...this.#aside.values()].filter(
      ({ message }) => messageId === undefined || message.message_id === messageId,
    );
    for (const { key, problem: _, ...message } of chosen) {
      this.#remove(key);
      this.#put({ ...message, queuedAtMs: Date.now() });
    }
    return chosen.length;
  }

  async discard(messageId: string): Promise<boolean> {
    const found = (await this.list()).find(({ message }) => message.message_id === messageId);
    if (found !== undefined) this.#remove(found.key);
    return found !== undefined;
  }

  async list(): Promise<QueuedMessage[]> {
    return [...this.#waiting.values(), ...this.#aside.values()];
  }

  async clear(): Promise<void> {
    this.#waiting.clear();
    this.#aside.clear();
    this.#cursors.clear();
    this.#bytes = 0;
    this.#subject = undefined;
    this.#producerId = randomId();
  }

  async setSubject(subject: string): Promise<void> {
    this.#subject = subject;
  }

  async readCursor(name: string): Promise<string | undefined> {
    return this.#cursors.get(name);
  }

  async writeCursor(name: string, position: string): Promise<void> {
    this.#cursors.set(name, position);
  }

  // No other tab has this queue.
  async lease(): Promise<boolean> {
    return true;
  }

  async release(): Promise<void> {}

  close(): void {}

  #put(message: Omit<QueuedMessage, "key">): void {
    const key = ++this.#lastKey;
    this.#waiting.set(key, { ...message, key });
    this.#bytes += message.bytes;
  }

  #remove(key: number): void {
    const message = this.#waiting.get(key) ?? this.#aside.get(key);
    this.#waiting.delete(key);
    this.#aside.delete(key);
    this.#bytes -= message?.bytes ?? 0;
  }
}
