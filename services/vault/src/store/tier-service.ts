// Objects in remotes: restores, the end of restores, and the deletion of keys that no version has any more.
import { setTimeout as sleep } from "node:timers/promises";
import type { IndexConnection } from "../index/schema.ts";
import { decodeKey } from "../index/records.ts";
import type { BlobRecord } from "../model/blob.ts";
import { findDueDate } from "../model/lifecycle-rule.ts";
import type { ObjectAddress } from "../model/object.ts";
import { isOutcomeUnknown, StoreError } from "../model/store-error.ts";
import type { TaskAddress } from "../model/task.ts";
import { readDeletion } from "../transaction/remote-rows.ts";
import type { ServiceEnvironment } from "./object-service.ts";
import type { CopyDescription } from "./record-description.ts";
import { TierMover } from "./tier-mover.ts";

/** A task about a version or a key. */
interface TierTask extends TaskAddress {
  readonly rule: string;
  readonly bucket: number;
  readonly key: Uint8Array;
  readonly version: string;
}

const READERS_EVERY_MS = 100;
const READERS_MS_MAX = 2_000;
const MARKS_MAX = 10_000;
const GONE: ReadonlySet<string> = new Set([
  "NoSuchBucket",
  "NoSuchKey",
  "NoSuchVersion",
  "MethodNotAllowed",
]);

/** The result of a request for a restore. */
export interface RestoreRequested {
  readonly versionId: string;
  /** The copy exists already, and has a new end. */
  readonly isRestored: boolean;
}

/** Restores, and the work of tasks about remotes. */
export class TierService {
  readonly mover: TierMover;
  readonly #env: ServiceEnvironment;
  readonly #index: IndexConnection;
  // The readers that a deletion waits for, by its task.
  readonly #marks = new Map<number, number>();

  constructor(environment: ServiceEnvironment, index: IndexConnection) {
    this.#env = environment;
    this.#index = index;
    this.mover = new TierMover(environment);
  }

  /**
   * Requests a local copy of a version for some days. Throws InvalidObjectState if no body of it is in a remote, and
   * RestoreAlreadyInProgress.
   */
  async requestRestore(address: ObjectAddress, days: number): Promise<RestoreRequested> {
    const { writer, now } = this.#env;
    const nowMs = now();
    const untilMs = findDueDate(nowMs, days);
    return writer.submit({ type: "requestRestore", address, days, untilMs, nowMs });
  }

  /** Deletes a key in a remote. Fails, to be tried again, while the remote does not accept it. */
  async deleteKey(task: TierTask, signal: AbortSignal): Promise<void> {
    const { blobs, writer } = this.#env;
    const key = readDeletion(task);
    const { id, seq } = task;
    if (this.mover.isWriting(key)) throw new Error("the key is being written");
    if (!(await this.#waitForReaders(id, signal))) throw new Error("the object is being read");
    await blobs.remotes.require(key.remote).delete(key, signal);
    this.#marks.delete(id);
    await writer.submit({ type: "endTask", task: { id, seq } });
  }

  // As local bytes, those in a remote go after the readers that began before their version was deleted. Later attempts wait for
  // the same readers, so that others cannot delay the deletion for ever.
  async #waitForReaders(task: number, signal: AbortSignal): Promise<boolean> {
    const { leases } = this.#env.bodies;
    if (this.#marks.size > MARKS_MAX) this.#marks.clear();
    const mark = this.#marks.get(task) ?? leases.mark();
    this.#marks.set(task, mark);
    for (let waitedMs = 0; !leases.isPast(mark); waitedMs += READERS_EVERY_MS) {
      if (waitedMs >= READERS_MS_MAX) return false;
      await sleep(READERS_EVERY_MS, undefined, { signal });
    }
    return true;
  }

  /** Copies the bodies of a version from their remote. The copies, the end of the task and that of the copies are one commit. */
  async restore(task: TierTask, signal: AbortSignal): Promise<void> {
    const { writer, now, points, blobs } = this.#env;
    const { id, seq } = task;
    const endTask = () => writer.submit({ type: "endTask", task: { id, seq } });
    const address = this.#findAddress(task);
    const found = address === undefined ? undefined : this.#findStored(address);
    if (address === undefined || found?.blob === undefined) {
      await endTask();
      return;
    }
    const { row, blob } = found;
    const days = readDays(row.detail);
    if (days === undefined) {
      await endTask();
      return;
    }
    const bodies =
      blob.place.kind === "parts"
        ? points.findParts(blob.id, 0, blob.size).map(({ record }) => record)
        : [blob];
    const written: Copy[] = [];
    const endWrite = blobs.writes.begin();
    // Until the commit begins, the copies are in no index.
    let isKept = false;
    try {
      for (const body of bodies) {
        if (body.place.kind !== "remote" || body.place.at?.copy !== undefined) continue;
        written.push(await this.#copy(body, signal));
      }
      const copies = written.map(({ remote, copy }) => ({ remote, copy }));
      const nowMs = now();
      const untilMs = findDueDate(nowMs, days);
      const operation = { type: "finishRestore", task: { id, seq }, address, copies } as const;
      isKept = await writer.submit({ ...operation, untilMs, nowMs }).then(
        ({ isUsed }) => isUsed,
        (error: unknown) => {
          isKept = isOutcomeUnknown(error);
          throw error;
        },
      );
    } finally {
      for (const one of written) await one.end(isKept);
      endWrite();
    }
  }

  /** Drops the local copies of a version. What is in the remote stays. */
  async endRestore(task: TierTask): Promise<void> {
    const { writer, now } = this.#env;
    const { id, seq } = task;
    const address = this.#findAddress(task);
    await writer.submit(
      address === undefined
        ? { type: "endTask", task: { id, seq } }
        : { type: "endRestore", task: { id, seq }, address, nowMs: now() },
    );
  }

  async #copy(body: BlobRecord, signal: AbortSignal): Promise<Copy> {
    const { blobs } = this.#env;
    const { place, stored, size } = body;
    if (place.kind !== "remote" || place.at === undefined) throw new TypeError("not in a remote");
    const id = blobs.takeId();
    const description: CopyDescription = { copyOf: body.id };
    const writer = blobs.begin({ id, stored, description, tenant: "" });
    try {
      const open = await blobs.openPaced(body, signal);
      for await (const chunk of open.read(0, stored)) {
        signal.throwIfAborted();
        await writer.write(chunk);
      }
      const { place: to, extent } = await writer.seal({});
      const end = async (isKept: boolean): Promise<void> => {
        if (!isKept) await writer.discard();
        if (to.kind === "segment") blobs.segments.unpin(to.segment);
      };
      return { remote: body.id, copy: { id, size, stored, place: to, extent }, end };
    } catch (error) {
      await writer.discard();
      throw error;
    }
  }

  #findAddress({ bucket, key, version }: TierTask): ObjectAddress | undefined {
    const row = this.#index.sql("select name from buckets where id = ?").get(bucket);
    if (row === undefined) return undefined;
    return { bucket: String(row["name"]), key: decodeKey(key), versionId: version };
  }

  #findStored({ bucket, key, versionId }: ObjectAddress) {
    const { buckets, points } = this.#env;
    try {
      return points.requireStored(buckets.requireState(bucket), key, versionId);
    } catch (error) {
      if (error instanceof StoreError && GONE.has(error.code)) return undefined;
      throw error;
    }
  }
}

interface Copy {
  remote: number;
  copy: BlobRecord;
  /** Removes what is not used. */
  end: (isKept: boolean) => Promise<void>;
}

// Undefined if the restore is complete, or was given up.
function readDays(detail: string): number | undefined {
  const { restore } = JSON.parse(detail) as { restore?: { days: number; untilMs?: number } };
  return restore === undefined || restore.untilMs !== undefined ? undefined : restore.days;
}
