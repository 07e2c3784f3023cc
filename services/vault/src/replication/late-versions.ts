// Versions that wait for longer than S3's threshold: an event reports each of them once, where a bucket subscribes to it.
import { decodeKey } from "../index/records.ts";
import type { Store } from "../object-store.ts";
import type { WaitingReplication } from "../store/replication-service.ts";

/** Tasks that are reported in one commit. */
const REPORTED_AT_ONCE = 500;
/** Tasks that have begun again behind the mark; further ones are not reported. */
const POSTPONED_MAX = 1_000;
const EVENT = "Replication:OperationMissedThreshold";

/**
 * Looks at the tasks in the order of their ids, each once: ids grow with time. Those that have begun again are looked at
 * once more.
 */
export class LateVersions {
  readonly #store: Store;
  #after = 0;
  #postponed: number[] = [];

  constructor(store: Store) {
    this.#store = store;
  }

  /** Reports the versions that wait since before `beforeMs`. */
  async report(beforeMs: number): Promise<void> {
    const { replication } = this.#store;
    const postponed = this.#postponed.splice(0);
    for (let at = 0; at < postponed.length; at += REPORTED_AT_ONCE)
      await this.#reportAll(
        replication.findWaiting(postponed.slice(at, at + REPORTED_AT_ONCE)),
        beforeMs,
      );
    for (;;) {
      const { tasks, last } = replication.listWaiting(this.#after, beforeMs);
      await this.#reportAll(tasks, beforeMs);
      if (last === undefined) return;
      this.#after = last;
    }
  }

  async #reportAll(tasks: readonly WaitingReplication[], beforeMs: number): Promise<void> {
    const reports = tasks.flatMap((task) => {
      const { id, bucket: number, key: bytes, version, rule, added } = task;
      if ((added ?? 0) > beforeMs) {
        if (this.#postponed.length < POSTPONED_MAX) this.#postponed.push(id);
        return [];
      }
      const bucket = this.#store.findBucketName(number);
      if (bucket === undefined || !this.#isSubscribed(bucket)) return [];
      return [this.#store.replication.noteLate({ bucket, key: decodeKey(bytes), version, rule })];
    });
    await Promise.all(reports);
  }

  #isSubscribed(bucket: string): boolean {
    const rules = this.#store.buckets.find(bucket)?.settings.notification?.rules ?? [];
    return rules.some(({ events }) => events.includes(EVENT) || events.includes("Replication:*"));
  }
}
