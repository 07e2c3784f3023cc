// Watches the drives: leaves out what is gone, takes back what returns, and has it healed.
import type { Logger } from "@platform/kernel/log";
import { type BlobStore, clearStaging } from "../blob/blob-store.ts";
import type { DriveSetListener } from "../blob/drive/drive-set.ts";
import type { Drive } from "../blob/drive/drive.ts";
import type { DriveIdentity } from "../blob/drive/identity.ts";
import { judgeIdentity, takeDrive, tryReadIdentity } from "../blob/drive/open-drives.ts";
import type { FailoverIndex } from "../index/failover-index.ts";
import type { ReaderPool } from "../query/reader-pool.ts";
import type { IndexWriter } from "../transaction/writer.ts";
import type { Healer } from "./healer.ts";

/** What is known of one drive. */
export interface DriveState {
  slot: number;
  folder: string;
  /** `healing`: it is there and lacks something still. */
  state: "present" | "healing" | "absent";
  /** Why it is absent. */
  reason?: string;
}

/** What the keeper works with. */
export interface KeeperEnvironment {
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

/** Shards and segments that were found damaged and wait to be healed; past them the scrubber finds the rest. */
const DAMAGED_MAX = 1_000;

/** Keeps the drives of a store. */
export class DriveKeeper implements DriveSetListener {
  readonly #env: KeeperEnvironment;
  // Slots that lack something, and those of them of which all copies of the index say so.
  readonly #behind: Set<number>;
  readonly #marked = new Set<number>();
  // What began before a drive returned may lack something on it: healing is done when all of that is settled.
  readonly #returned = new Map<number, number>();
  readonly #damaged = new Map<string, () => Promise<void>>();
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  #isClosed = false;

  constructor(environment: KeeperEnvironment) {
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
   * Brings all copies of the index to the newest one, and begins to watch. What the newest copy has is confirmed before
   * anybody sees it: on a single drive it could be lost with that drive.
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
    // Where too few drives are there, or full, it is read only.
    await writer.submit({ type: "confirm" }).catch(() => undefined);
    this.#timer = setInterval(() => void this.check(), this.#env.checkEveryMs).unref();
  }

  /** Ends watching, and healing. */
  async stop(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#env.healer.stop();
    await this.#running;
  }

  /** The drives as they are. */
  list(): DriveState[] {
    return this.#env.blobs.drives.all.map(({ slot, folders, absence }) => ({
      slot,
      folder: folders.root,
      ...(absence === undefined
        ? { state: this.#behind.has(slot) ? ("healing" as const) : ("present" as const) }
        : { state: "absent" as const, reason: absence }),
    }));
  }

  /** One round: looks at each drive, takes back what has returned, heals what lacks something. */
  check(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#running ??= this.#check()
      // What could not be done now is tried again by the next round.
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
    // So that the segment of now gets its place on the drive.
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
    this.#env.log?.info("a drive is whole", describeDrive(drive));
    // Gone meanwhile.
    if (!drive.isPresent) this.#mark(drive.slot);
  }

  // Before anything that is written without the drive is committed: operations keep their order.
  #mark(slot: number): void {
    this.#behind.add(slot);
    if (this.#marked.has(slot)) return;
    this.#marked.add(slot);
    this.#env.writer.submit({ type: "markDrive", slot, isBehind: true }).catch(() => {
      // Where nothing can be written, nothing is missed; the next round tries again.
      this.#marked.delete(slot);
    });
  }

  #giveUpIndex(reason: string): boolean {
    const { index, blobs, writer } = this.#env;
    const drive = blobs.drives.all.find(({ folders }) => folders.index === index.path);
    if (drive !== undefined && writer.slots.length > 1) blobs.drives.fail(drive, reason);
    return drive?.folders.index !== index.path;
  }

  // Reading goes on with a copy that is written to.
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
