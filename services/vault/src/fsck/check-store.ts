// Checks a stopped store file by file: finds damage and what can be restored, and restores it.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { syncFolder } from "@platform/kernel/files";
import { closeFile, openFile, StoreFolders, syncData } from "../disk/files.ts";
import { checkDirectory } from "../access/directory.ts";
import { FrameMemory } from "../blob/frame-memory.ts";
import { readBucketsFile } from "../store/buckets-file.ts";
import { Drive } from "../blob/drive/drive.ts";
import { DriveSet } from "../blob/drive/drive-set.ts";
import { writeIdentity, type DriveIdentity } from "../blob/drive/identity.ts";
import { chooseIdentity, judgeIdentity, tryReadIdentity } from "../blob/drive/open-drives.ts";
import { inspectIndex } from "../index/inspect.ts";
import { isBefore, readMark, type IndexMark } from "../index/mark.ts";
import { copyIndex } from "../index/snapshot.ts";
import { judgeIndex } from "../index/start-check.ts";
import { lockStore } from "../index/store-lock.ts";
import { StoreError } from "../model/store-error.ts";
import { checkBodies } from "./check-bodies.ts";
import { checkRemotes, type RemoteCheckOptions } from "./check-remotes.ts";
import { restoreIndex, type RestoreReport } from "./restore-index.ts";

/** Options of the check. */
export interface FsckOptions {
  dataDir: string;
  /** Folders of several drives, in their order. */
  drives?: readonly string[];
  /** Restores everything that can be restored; nothing is changed without it. */
  isRepair: boolean;
  /** Reads the bodies in remotes as well. */
  remotes?: RemoteCheckOptions;
}

interface FsckFinding {
  /** `lost`: acknowledged data that cannot be restored. */
  state: "whole" | "damaged" | "restored" | "lost" | "note";
  path: string;
  text: string;
}

/** All findings. */
export interface FsckReport {
  findings: FsckFinding[];
  /** Nothing is damaged. After a repair: no damage remains, and nothing was lost. */
  isWhole: boolean;
}

const NAMED_MAX = 1_000;

/** Checks a store. Rejects if another process has it open, or if it is not a store. */
export async function checkStore(options: FsckOptions): Promise<FsckReport> {
  const findings: FsckFinding[] = [];
  const check = new StoreCheck(options, (state, path, text) =>
    findings.push({ state, path, text }),
  );
  await check.run();
  const isBad = ({ state }: FsckFinding) =>
    state === "lost" || (state === "damaged" && !options.isRepair);
  return { findings, isWhole: !findings.some(isBad) && check.isWhole };
}

type Note = (state: FsckFinding["state"], path: string, text: string) => void;

class StoreCheck {
  /** False if damage remains that a repair cannot undo. */
  isWhole = true;
  readonly #options: FsckOptions;
  readonly #note: Note;
  readonly #locks: (() => void)[] = [];

  constructor(options: FsckOptions, note: Note) {
    this.#options = options;
    this.#note = note;
  }

  async run(): Promise<void> {
    const { dataDir, drives = [] } = this.#options;
    const work = this.#makeWorkFolder();
    try {
      await (drives.length === 0
        ? this.#checkFolder(new StoreFolders(dataDir), work)
        : this.#checkDrives(drives, work));
      this.#checkDataDir(new StoreFolders(dataDir));
    } finally {
      for (const unlock of this.#locks) unlock();
      rmSync(work, { recursive: true, force: true });
    }
  }

  // Without a repair nothing is written into the store.
  #makeWorkFolder(): string {
    const { dataDir, isRepair } = this.#options;
    if (!existsSync(dataDir)) throw refuse(`${dataDir} is missing`);
    return mkdtempSync(isRepair ? join(dataDir, "fsck-") : join(tmpdir(), "platform-vaultd-fsck-"));
  }

  async #checkFolder(folders: StoreFolders, work: string): Promise<void> {
    this.#lock(folders);
    const { isRepair } = this.#options;
    const { reason } = judgeIndex(folders, Infinity);
    let index = folders.index;
    this.#checkSmallFiles(folders);
    if (reason === undefined) {
      if (!existsSync(index)) return this.#note("note", index, "there is no store here yet");
      this.#note("whole", index, "every row is intact");
    } else {
      this.#note("damaged", index, reason);
      const restored = join(work, "restored.sqlite");
      const report = await restoreIndex(folders, restored, work);
      this.#tell(index, report);
      if (isRepair) await replaceIndex(folders, restored);
      else index = restored;
    }
    await this.#checkBodies(index, new DriveSet([makeDrive(folders, 0)], 1, 0));
  }

  async #checkDrives(paths: readonly string[], work: string): Promise<void> {
    const known = chooseIdentity(paths);
    if (known === undefined) throw refuse("no drive identifies its store");
    const all = paths.map((path, slot) => makeDrive(new StoreFolders(path), slot));
    const { slot: _, ...identity } = known;
    for (const drive of all) await this.#checkIdentity(drive, identity);
    const drives = new DriveSet(all, identity.data, identity.parity);
    for (const { folders } of drives.present) {
      this.#lock(folders);
      this.#checkSmallFiles(folders);
    }
    const index = await this.#checkReplicas(drives, work);
    if (index !== undefined) await this.#checkBodies(index, drives);
  }

  async #checkIdentity(drive: Drive, identity: Omit<DriveIdentity, "slot">): Promise<void> {
    const { folders, slot } = drive;
    const path = join(folders.root, "drive.json");
    if (!existsSync(folders.root)) {
      drive.absence = "its folder is missing";
      this.isWhole = false;
      return this.#note("damaged", folders.root, drive.absence);
    }
    const found = tryReadIdentity(folders.root);
    const reason = judgeIdentity(found, identity, slot);
    if (reason === undefined) return this.#note("whole", path, `drive ${slot}`);
    // A folder with an index and bodies belongs to the drive of its slot; another store would have another id.
    const isOurs = existsSync(folders.index) || existsSync(folders.segments);
    const isForeign = found !== undefined && !isSimilar(found.store, identity.store);
    this.#note("damaged", path, reason);
    if (!isOurs || isForeign) {
      drive.absence = reason;
      this.isWhole = false;
      return;
    }
    if (!this.#options.isRepair) return;
    await writeIdentity(folders.root, { ...identity, slot });
    this.#note("restored", path, "written from what the other drives say");
  }

  // Resolves to the copy of the index that is used.
  async #checkReplicas(drives: DriveSet, work: string): Promise<string | undefined> {
    const { isRepair } = this.#options;
    const judged = drives.present.map((drive) => ({
      drive,
      ...judgeIndex(drive.folders, Infinity),
    }));
    let best: { path: string; position: IndexMark } | undefined;
    for (const { drive, position, reason } of judged) {
      const path = drive.folders.index;
      this.#note(reason === undefined ? "whole" : "damaged", path, reason ?? "every row is intact");
      if (reason !== undefined || position === undefined) continue;
      if (best === undefined || isBefore(best.position, position)) best = { path, position };
    }
    const marks = judged.flatMap(({ drive }) => readMark(drive.folders.index).mark ?? []);
    const newest = marks.find((mark) => best !== undefined && isBefore(best.position, mark));
    if (newest !== undefined) {
      const text = `commit ${newest.commit} was written, but the newest intact copy of the index ends at ${best?.position.commit}`;
      this.#note("lost", drives.present[0]!.folders.index, text);
    }
    if (best === undefined) return this.#restoreReplica(drives, work);
    for (const { drive, reason } of judged) {
      if (reason === undefined || !isRepair) continue;
      moveIndex(drive.folders);
      await copyIndex(best.path, drive.folders.index, drive.slot);
      this.#note("restored", drive.folders.index, `copied from ${best.path}`);
    }
    return best.path;
  }

  async #restoreReplica(drives: DriveSet, work: string): Promise<string | undefined> {
    const [first, ...others] = drives.present;
    if (first === undefined) return undefined;
    const restored = join(work, "restored.sqlite");
    this.#tell(first.folders.index, await restoreIndex(first.folders, restored, work));
    if (!this.#options.isRepair) return restored;
    await replaceIndex(first.folders, restored);
    for (const { folders, slot } of others) {
      moveIndex(folders);
      await copyIndex(first.folders.index, folders.index, slot);
    }
    return first.folders.index;
  }

  async #checkBodies(index: string, drives: DriveSet): Promise<void> {
    const { root } = drives.all[0]!.folders;
    const { isRepair } = this.#options;
    const report = await checkBodies(index, drives, isRepair);
    const { lost, healable, returned, unused } = report;
    for (const name of lost.slice(0, NAMED_MAX))
      this.#note("lost", root, `${name}: its body is damaged`);
    if (lost.length > NAMED_MAX) this.#note("lost", root, `${lost.length - NAMED_MAX} more`);
    if (healable > 0) {
      const text = `${healable} shards and copies on single drives: the running store rewrites them`;
      this.#note("damaged", root, text);
    }
    if (returned > 0) {
      const text = `${returned} bodies lie in quarantine and are in use`;
      this.#note(isRepair ? "restored" : "damaged", root, isRepair ? `${text}: put back` : text);
    }
    if (unused > 0) this.#note("note", root, `${unused} bodies without an object`);
    if (lost.length + healable + returned === 0) {
      this.#note("whole", root, `${report.bodies} bodies in segments and files`);
    }
    await this.#checkRemotes(index, root);
  }

  async #checkRemotes(index: string, root: string): Promise<void> {
    const { remotes } = this.#options;
    if (remotes === undefined) return;
    const { bodies, lost, unread, unused } = await checkRemotes(index, remotes);
    for (const text of lost.slice(0, NAMED_MAX)) this.#note("lost", root, text);
    if (lost.length > NAMED_MAX) this.#note("lost", root, `${lost.length - NAMED_MAX} more`);
    for (const text of unread) this.#note("note", root, `not read in a remote: ${text}`);
    if (unread.length > 0) this.isWhole = false;
    for (const text of unused.slice(0, NAMED_MAX))
      this.#note("note", root, `a key without an object: ${text}`);
    if (lost.length + unread.length === 0) this.#note("whole", root, `${bodies} bodies in remotes`);
  }

  #tell(path: string, report: RestoreReport): void {
    const { objects, fromIndex, fromCopy, fromRecords, lost, notes } = report;
    const verb = this.#options.isRepair ? "restored" : "can be restored";
    this.#note(
      "restored",
      path,
      `${objects} objects ${verb}: ${fromIndex} versions from the index, ${fromCopy} from its copy, ${fromRecords} from records`,
    );
    for (const { name, reason } of lost.slice(0, NAMED_MAX)) {
      this.#note("lost", path, `${name}: ${reason}`);
    }
    for (const text of notes) this.#note("lost", path, text);
    if (notes.length > 0) {
      this.#note("note", path, "objects deleted or overwritten lately may be back");
    }
  }

  // The files that the data folder contains with several drives as well.
  #checkDataDir(folders: StoreFolders): void {
    const key = join(folders.root, "access", "master.key");
    if (existsSync(key) && readFileSync(key).length !== 32) {
      this.#note("lost", key, "it is no key of 32 bytes: put it back from a backup");
    }
    const directory = join(folders.root, "access", "directory.json");
    try {
      for (const { path, reason } of checkDirectory(directory, this.#options.isRepair)) {
        this.#note("damaged", path, reason);
        if (this.#options.isRepair) this.#note("restored", path, "from the other copy");
        else this.#note("note", path, "the next start restores it from the other copy");
      }
    } catch (error) {
      this.#note("lost", directory, (error as Error).message);
    }
  }

  #checkSmallFiles(folders: StoreFolders): void {
    const { index, indexCopy, buckets } = folders;
    if (readMark(index).isDamaged) {
      this.#note("damaged", `${index}.mark`, "it is damaged; the next start rewrites it");
    }
    if (existsSync(indexCopy)) {
      const { findings } = inspectIndex(indexCopy);
      const isWhole = findings.length === 0;
      const text = isWhole ? "every row is intact" : findings[0]!;
      this.#note(isWhole ? "whole" : "damaged", indexCopy, text);
      if (!isWhole && this.#options.isRepair) {
        renameSync(indexCopy, join(makeQuarantine(folders), "index-copy.sqlite"));
        this.#note("restored", indexCopy, "moved into quarantine; the running store makes another");
      }
    }
    try {
      readBucketsFile(buckets);
    } catch {
      this.#note("damaged", buckets, "it is damaged; the next start rewrites it");
    }
    const staged = existsSync(folders.staging) ? readdirSync(folders.staging).length : 0;
    if (staged > 0) this.#note("note", folders.staging, `${staged} files of interrupted uploads`);
  }

  #lock({ lock }: StoreFolders): void {
    if (existsSync(lock) || this.#options.isRepair) this.#locks.push(lockStore(lock));
  }
}

// At most two flipped bits, not the id of another store.
function isSimilar(one: string, other: string): boolean {
  if (one.length !== other.length) return false;
  let differing = 0;
  for (let at = 0; at < one.length; at += 1) {
    if (one.charCodeAt(at) !== other.charCodeAt(at)) differing += 1;
  }
  return differing <= 2;
}

function makeDrive(folders: StoreFolders, slot: number): Drive {
  return new Drive(slot, folders, 100, new FrameMemory());
}

// The files of the damaged index stay for further rescue attempts.
function moveIndex(folders: StoreFolders): void {
  const base = makeQuarantine(folders);
  let target = "";
  for (let number = 1; target === "" || existsSync(target); number += 1) {
    target = join(base, `index-${number}`);
  }
  mkdirSync(target, { mode: 0o700 });
  const { index } = folders;
  for (const ending of ["", "-wal", "-shm", ".mark"]) {
    const path = `${index}${ending}`;
    if (existsSync(path)) renameSync(path, join(target, `index.sqlite${ending}`));
  }
}

function makeQuarantine({ quarantine }: StoreFolders): string {
  mkdirSync(quarantine, { recursive: true, mode: 0o700 });
  return quarantine;
}

async function replaceIndex(folders: StoreFolders, restored: string): Promise<void> {
  const fd = await openFile(restored, "r+");
  try {
    await syncData(fd);
  } finally {
    await closeFile(fd);
  }
  moveIndex(folders);
  renameSync(restored, folders.index);
  await syncFolder(folders.root);
}

function refuse(reason: string): StoreError {
  return new StoreError("ServiceUnavailable", reason);
}
