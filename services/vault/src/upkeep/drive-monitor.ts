// Monitors the drives: removes failed drives, re-adds those that come back, and heals them.
import type { Logger } from "@platform/kernel/log";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { type BlobStore, clearStaging } from "../blob/blob-store.ts";
import type { DriveSetListener } from "../blob/drive/drive-set.ts";
import type { Drive } from "../blob/drive/drive.ts";
import type { DriveIdentity } from "../blob/drive/identity.ts";
import { judgeIdentity, takeDrive, tryReadIdentity } from "../blob/drive/open-drives.ts";
import type { FailoverIndex } from "../index/failover-index.ts";
import type { ReaderPool } from "../query/reader-pool.ts";
import type { IndexWriter } from "../transaction/writer.ts";
import type { Healer } from "./healer.ts";

/** The state of one drive. */
export interface DriveState {
  slot: number;
  folder: string;
  /** `healing`: present, but still incomplete. */
  state: "present" | "healing" | "absent";
  /** The reason for its absence. */
  reason?: string;
}

/** Options of the monitor. */
export interface DriveMonitorOptions {
  blobs: BlobStore;
  writer: IndexWriter;
  index: FailoverIndex;
  readers: ReaderPool;
  healer: Healer;
  identity: Omit<DriveIdentity, "slot">;
  locks: Map<number, () => void>;
  checkEveryMs: number;
  log: Logger | undefined;
}

/** Maximum number of damaged shards and segments queued for healing; the scrubber finds any beyond it. */
const DAMAGED_MAX = 1_000;

/** Monitors the drives of a store. */
export class DriveMonitor implements DriveSetListener {
  readonly #env: DriveMonitorOptions;
  // Incomplete slots, and those of them that all copies of the index have marked.
  readonly #behind: Set<number>;
  readonly #marked = new Set<number>();
  // Writes that began before a drive returned may be missing on it: healing ends only after all of them are settled.
  readonly #returned = new Map<number, number>();
  readonly #damaged = new Map<string, () => Promise<void>>();
  #timer: RepeatingTimer | undefined;
  #running: Promise<void> | undefined;
  #isClosed = false;

  constructor(environment: DriveMonitorOptions) {
    this.#env = environment;
    const { blobs, writer, index, readers } = environment;
    this.#behind = new Set(writer.drivesBehind);
    blobs.drives.listener = this;
    blobs.onDamage = ({ blob, slot }) => this.#noteDamage(blob.place, blob.id, slot);
    writer.onLost = (slot, reason) => blobs.drives.fail(blobs.drives.all[slot]!, reason);
    index.onFailure = () => this.#giveUpIndex("its index cannot be read");
    readers.onFailure = () => this.#giveUpIndex("its index cannot be read");
  }

  get healer(): Healer {
    return this.#env.healer;
  }

  /**
   * Brings all copies of the index up to the newest one, and starts monitoring. Commits of the newest copy are confirmed
   * before readers see them: on a single drive they could be lost with that drive.
   */
  async start(): Promise<void> {
    const { blobs, writer } = this.#env;
    const wanting = blobs.drives.all.filter(({ slot }) => !writer.slots.includes(slot));
    for (const drive of wanting) {
      this.#behind.add(drive.slot);
      if (!drive.isPresent) {
        this.#env.log?.warn("a drive is missing", describeDrive(drive));
        continue;
      }
      try {
        await writer.add(drive.slot, drive.folders.index);
      } catch (error) {
        blobs.drives.fail(drive, error instanceof Error ? error.message : String(error));
      }
    }
    for (const slot of this.#behind) this.#mark(slot);
    // If too few drives are present, or they are full, the store is read-only.
    await writer.submit({ type: "confirm" }).catch(() => undefined);
    this.#timer = every(
      this.#env.checkEveryMs,
      () => this.check(),
      () => undefined,
    );
  }

  /** Stops monitoring and healing. */
  async stop(): Promise<void> {
    this.#isClosed = true;
    this.#env.healer.stop();
    await this.#timer?.stop();
    await this.#running;
  }

  /** The state of each drive. */
  list(): DriveState[] {
    return this.#env.blobs.drives.all.map(({ slot, folders, absence }) => ({
      slot,
      folder: folders.root,
      ...(absence === undefined
        ? { state: this.#behind.has(slot) ? ("healing" as const) : ("present" as const) }
        : { state: "absent" as const, reason: absence }),
    }));
  }

  /** One round: checks each drive, takes back returned ones, heals incomplete ones. */
  check(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#running ??= this.#check()
      // Failures are retried by the next round.
      .catch(() => undefined)
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  onAbsent(drive: Drive, reason: string): void {
    const { writer, blobs, locks, log } = this.#env;
    const { slot } = drive;
    log?.error("a drive is lost", describeDrive(drive));
    writer.drop(slot, reason);
    this.#leaveIndex(slot);
    blobs.segments.roll();
    this.#mark(slot);
    locks.get(slot)?.();
    locks.delete(slot);
  }

  async #check(): Promise<void> {
    const { blobs, identity } = this.#env;
    for (const drive of blobs.drives.all) {
      if (this.#isClosed) return;
      const { slot, folders } = drive;
      if (!drive.isPresent) {
        await this.#takeBack(drive);
        continue;
      }
      const reason = judgeIdentity(tryReadIdentity(folders.root), identity, slot);
      if (reason !== undefined) blobs.drives.fail(drive, reason);
    }
    for (const slot of this.#behind) this.#mark(slot);
    for (const [name, heal] of this.#damaged) {
      if (this.#isClosed) return;
      this.#damaged.delete(name);
      await heal().catch(() => undefined);
    }
    for (const slot of this.#behind) {
      const drive = blobs.drives.all[slot];
      if (drive?.isPresent === true && !this.#isClosed) await this.#heal(drive);
    }
  }

  async #takeBack(drive: Drive): Promise<void> {
    const { identity, locks, writer, blobs, log } = this.#env;
    const { slot, folders } = drive;
    const absence = await takeDrive(drive, identity, false, locks);
    if (absence !== undefined) {
      drive.absence = absence;
      return;
    }
    try {
      clearStaging(drive);
      await writer.add(slot, folders.index);
    } catch (error) {
      locks.get(slot)?.();
      locks.delete(slot);
      drive.absence = error instanceof Error ? error.message : String(error);
      return;
    }
    this.#mark(slot);
    drive.absence = undefined;
    this.#returned.set(slot, blobs.writes.mark());
    log?.info("a drive is back and is being healed", describeDrive(drive));
    // The next segment gets a copy on the drive; the current one would not.
    blobs.segments.roll();
  }

  async #heal(drive: Drive): Promise<void> {
    const { blobs, healer, writer } = this.#env;
    const isSettled = blobs.writes.isPast(this.#returned.get(drive.slot) ?? 0);
    const isWhole = await healer.healDrive(drive);
    if (!isWhole || !isSettled || !drive.isPresent) return;
    await writer.submit({ type: "markDrive", slot: drive.slot, isBehind: false });
    this.#behind.delete(drive.slot);
    this.#marked.delete(drive.slot);
    this.#env.log?.info("a drive is complete again", describeDrive(drive));
    // The drive may have disappeared in the meantime.
    if (!drive.isPresent) this.#mark(drive.slot);
  }

  // Before any write without the drive is committed: operations keep their order.
  #mark(slot: number): void {
    this.#behind.add(slot);
    if (this.#marked.has(slot)) return;
    this.#marked.add(slot);
    this.#env.writer.submit({ type: "markDrive", slot, isBehind: true }).catch(() => {
      // If nothing can be written, nothing can be missing; the next round retries.
      this.#marked.delete(slot);
    });
  }

  #giveUpIndex(reason: string): boolean {
    const { index, blobs, writer } = this.#env;
    const drive = blobs.drives.all.find(({ folders }) => folders.index === index.path);
    if (drive !== undefined && writer.slots.length > 1) blobs.drives.fail(drive, reason);
    return drive?.folders.index !== index.path;
  }

  // Reads continue with a copy that is written to.
  #leaveIndex(slot: number): void {
    const { index, readers, blobs, writer } = this.#env;
    if (index.path !== blobs.drives.all[slot]?.folders.index) return;
    const [next] = writer.slots;
    if (next === undefined) return;
    const path = blobs.drives.all[next]!.folders.index;
    index.switchTo(path);
    readers.switchTo(path);
  }

  #noteDamage(place: { kind: string; segment?: number }, id: number, slot: number): void {
    const { healer, blobs } = this.#env;
    const drive = blobs.drives.all[slot]!;
    const name = place.kind === "segment" ? `${slot}/s/${place.segment}` : `${slot}/b/${id}`;
    if (this.#damaged.has(name) || this.#damaged.size >= DAMAGED_MAX) return;
    const { segment } = place;
    this.#damaged.set(name, async () => {
      if (!drive.isPresent) return;
      if (segment === undefined) await healer.healShard(drive, id);
      else if (!blobs.segments.isPinned(segment)) await healer.healSegment(drive, segment);
    });
  }
}

function describeDrive({ slot, folders, absence }: Drive): Record<string, unknown> {
  return { slot, folder: folders.root, ...(absence === undefined ? {} : { reason: absence }) };
}
