// The outbox for its readers: events in order, until they are acknowledged.
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { IndexConnection } from "../index/schema.ts";
import type { IndexWriter } from "../transaction/writer.ts";
import type { EventOutbox, PendingEvent } from "../model/event.ts";

const READ_MAX = 1000;
const WATCH_EVERY_MS = 50;

/** Pending events. */
export class StoredOutbox implements EventOutbox {
  readonly #index: IndexConnection;
  readonly #writer: IndexWriter;
  readonly #listeners = new Set<() => void>();
  #timer: RepeatingTimer | undefined;
  #seen = 0;

  constructor(index: IndexConnection, writer: IndexWriter) {
    this.#index = index;
    this.#writer = writer;
  }

  async read(max: number, afterId = 0): Promise<PendingEvent[]> {
    return this.#index
      .sql("select id, record from events where id > ? order by id limit ?")
      .all(afterId, Math.min(max, READ_MAX))
      .map((row) => ({
        ...(JSON.parse(String(row["record"])) as Omit<PendingEvent, "id">),
        id: Number(row["id"]),
      }));
  }

  async acknowledge(ids: readonly number[]): Promise<void> {
    if (ids.length === 0) return;
    await this.#writer.submit({ type: "acknowledgeEvents", ids });
  }

  onEvents(listener: () => void): () => void {
    this.#listeners.add(listener);
    this.#timer ??= every(
      WATCH_EVERY_MS,
      () => this.#watch(),
      (error) => {
        throw error;
      },
    );
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.close();
    };
  }

  /** Stops watching. */
  close(): void {
    void this.#timer?.stop();
    this.#timer = undefined;
  }

  // The totals of the writer are in memory, so this check is cheap.
  #watch(): void {
    const { commits, totals } = this.#writer;
    if (totals.pendingEvents === 0 || commits === this.#seen) return;
    this.#seen = commits;
    for (const listener of this.#listeners) listener();
  }
}
