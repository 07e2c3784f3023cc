// Wraps the keys of blobs with the current versions of their key-encryption keys, and forgets those that nothing names.
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "@platform/kernel/log";
import { type Kek, type KeyProvider, type KeyRotation, renewCipher } from "../blob/encryption.ts";
import type { IndexConnection } from "../index/schema.ts";
import type { WrappedCipher } from "../model/blob.ts";
import { StoreError } from "../model/store-error.ts";
import { isKekUsed, listBlobsOfKek, listUsedKeks, type NamedBlob } from "../query/key-usage.ts";
import type { ServiceEnvironment } from "../store/object-service.ts";
import type { RewrapBlobsOperation } from "../transaction/key-operations.ts";

/** Rows of one commit while nobody else writes, and while others do: a request waits for at most one of these commits. */
const BATCH_ROWS = { quiet: 750, busy: 200 };
/** Pause after a commit while others wait for theirs, in times of that commit. */
const BUSY_PAUSE = 6;
const WRITES_EVERY_MS = 50;
/** Writes that began before a change of keys may last this long before the next round tries again. */
const WRITES_MS_MAX = 10_000;

/** The result of a round. */
export interface RewrapReport {
  /** Rows that were wrapped again. */
  rewrapped: number;
  /** Rows that could not be. */
  failed: number;
  /** Versions of keys that were forgotten. */
  retired: number;
  /** Named keys that were deleted. */
  deleted: number;
}

/** Options of {@link KeyRewrapper}. */
export interface KeyRewrapperOptions {
  environment: Pick<ServiceEnvironment, "keys" | "writer" | "blobs" | "points">;
  index: IndexConnection;
  log: Logger | undefined;
  /** Copies the index, if the store keeps a copy: it must not name a key that is forgotten. */
  copyIndex: () => Promise<readonly string[]>;
}

/** Runs rounds over the rows that name a former version of a key. */
export class KeyRewrapper {
  readonly #options: KeyRewrapperOptions;
  readonly #totals = { rewrapped: 0, failed: 0 };

  constructor(options: KeyRewrapperOptions) {
    this.#options = options;
  }

  /** Rows since the start. */
  get totals(): Readonly<{ rewrapped: number; failed: number }> {
    return this.#totals;
  }

  /** True if a row names a former version of a key, or a former version is kept. */
  hasWork(): boolean {
    const { rotation } = this.#options.environment.keys ?? {};
    if (rotation === undefined) return false;
    return rotation.listFormer().length > 0 || rotation.listDue().length > 0;
  }

  async run(signal: AbortSignal): Promise<RewrapReport> {
    const report: RewrapReport = { rewrapped: 0, failed: 0, retired: 0, deleted: 0 };
    const { keys } = this.#options.environment;
    const rotation = keys?.rotation;
    if (keys === undefined || rotation === undefined) return report;
    for (const kek of listUsedKeks(this.#options.index)) {
      const next = findNext(rotation, kek);
      if (next === undefined) continue;
      await this.#rewrapAll(kek, next, keys, report, signal);
      if (signal.aborted) return report;
    }
    await this.#forget(rotation, report, signal);
    return report;
  }

  async #rewrapAll(
    kek: string,
    next: Kek,
    keys: KeyProvider,
    report: RewrapReport,
    signal: AbortSignal,
  ): Promise<void> {
    const { index, environment } = this.#options;
    const { writer } = environment;
    let size = BATCH_ROWS.quiet;
    // The next keys are wrapped while the writer commits the ones before.
    let commit = Promise.resolve(0);
    try {
      for (let after = 0; !signal.aborted;) {
        const begunMs = performance.now();
        const rows = listBlobsOfKek(index, kek, after, size);
        const last = rows.at(-1);
        if (last === undefined) return;
        after = last.id;
        const changes = rows.flatMap((row) => this.#renew(row, next, keys, report));
        const wrappedMs = performance.now() - begunMs;
        const committedMs = await commit;
        // Requests that write have most of the writer's time.
        const isBusy = writer.waiting > 0;
        size = isBusy ? BATCH_ROWS.busy : BATCH_ROWS.quiet;
        if (isBusy) await sleep((wrappedMs + committedMs) * BUSY_PAUSE);
        commit = this.#commit(changes, report);
        // It is awaited with the next keys.
        commit.catch(() => undefined);
      }
    } finally {
      await commit;
    }
  }

  // Resolves to its time in ms.
  async #commit(changes: RewrapBlobsOperation["blobs"], report: RewrapReport): Promise<number> {
    const begunMs = performance.now();
    const changed = await this.#submit(changes, report);
    report.rewrapped += changed;
    this.#totals.rewrapped += changed;
    return performance.now() - begunMs;
  }

  #renew(
    { id, cipher: from, kind }: NamedBlob,
    next: Kek,
    keys: KeyProvider,
    report: RewrapReport,
  ): RewrapBlobsOperation["blobs"] {
    try {
      const cipher = JSON.parse(from) as WrappedCipher;
      const { head = cipher.kek } = cipher;
      const renewed = renewCipher(cipher, keys, next, id);
      // Bodies in the index have no head, and compaction and the rewriting of heads end the mark of others.
      const to = kind === "inline" ? renewed : { ...renewed, head };
      return [{ id, from, to: JSON.stringify(to) }];
    } catch (error) {
      this.#fail(id, error, report);
      return [];
    }
  }

  // One damaged row must not hold the others back.
  async #submit(blobs: RewrapBlobsOperation["blobs"], report: RewrapReport): Promise<number> {
    if (blobs.length === 0) return 0;
    const { writer } = this.#options.environment;
    try {
      return (await writer.submit({ type: "rewrapBlobs", blobs })).changed;
    } catch (error) {
      if (!(error instanceof StoreError) || error.code !== "InternalError") throw error;
      if (blobs.length === 1) {
        this.#fail(blobs[0]!.id, error, report);
        return 0;
      }
    }
    let changed = 0;
    for (const blob of blobs) changed += await this.#submit([blob], report);
    return changed;
  }

  #fail(id: number, error: unknown, report: RewrapReport): void {
    report.failed += 1;
    this.#totals.failed += 1;
    if (report.failed > 1) return;
    const reason = error instanceof Error ? error.message : String(error);
    this.#options.log?.error("the key of a blob cannot be wrapped again", {
      blob: id.toString(16),
      reason,
    });
  }

  // An upload that began before the change of keys names the former one when it ends.
  async #forget(rotation: KeyRotation, report: RewrapReport, signal: AbortSignal): Promise<void> {
    const { index, copyIndex, environment } = this.#options;
    const { blobs, points } = environment;
    const former = rotation.listFormer();
    const due = rotation.listDue();
    const mark = blobs.writes.mark();
    const isFree = (kek: string): boolean => !isKekUsed(index, kek);
    const isAnyFree = former.some(isFree) || due.some(({ keks }) => keks.every(isFree));
    if (!isAnyFree) return;
    for (let waitedMs = 0; !blobs.writes.isPast(mark); waitedMs += WRITES_EVERY_MS) {
      if (waitedMs >= WRITES_MS_MAX || signal.aborted) return;
      await sleep(WRITES_EVERY_MS);
    }
    if ((await copyIndex()).length > 0 || signal.aborted) return;
    const free = former.filter(isFree);
    points.forgetRecent();
    if (free.length > 0) {
      rotation.retire(free);
      const left = new Set(rotation.listFormer());
      report.retired = free.filter((kek) => !left.has(kek)).length;
    }
    for (const { keyId, keks } of due) {
      if (!keks.every(isFree)) continue;
      rotation.remove(keyId);
      report.deleted += 1;
    }
  }
}

// While the source of the current version cannot be reached, rows keep the former one.
function findNext(rotation: KeyRotation, kek: string): Kek | undefined {
  try {
    return rotation.findSuccessor(kek);
  } catch (error) {
    if (error instanceof StoreError) return undefined;
    throw error;
  }
}
