// Finds the drives of a store at its start: their identities, their presence, and the newest copy of the index.
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { StoreFolders } from "../../disk/files.ts";
import type { FrameMemory } from "../frame-memory.ts";
import { lockStore } from "../../index/store-lock.ts";
import { isBefore } from "../../index/mark.ts";
import { clearCopy, isUnusedIndex } from "../../index/snapshot.ts";
import { judgeIndex } from "../../index/start-check.ts";
import { StoreError } from "../../model/store-error.ts";
import { Drive } from "./drive.ts";
import { DriveSet } from "./drive-set.ts";
import {
  isEmptyDrive,
  isReplacement,
  readIdentity,
  REPLACEMENT_MARK,
  writeIdentity,
  type DriveIdentity,
} from "./identity.ts";

/** Several drives: one folder each, in the order of their slots. */
export interface DriveOptions {
  folders: readonly string[];
  /** Drives that may be lost. Default 1. */
  parity?: number;
  /** Data shards of large bodies. Default: the number of drives minus the parity. */
  data?: number;
  /** Interval of drive checks, in ms. Default 1 s. */
  checkEveryMs?: number;
  /** Size up to which a copy of the index is checked as a whole at the start. Default 64 MiB. */
  inspectedBytesMax?: number;
}

/** The opened drives. */
export interface OpenedDrives {
  drives: DriveSet;
  identity: Omit<DriveIdentity, "slot">;
  /** Functions that unlock the drives, by slot. */
  locks: Map<number, () => void>;
  /** Slots with the newest copy of the index. */
  current: number[];
  /** The highest generation in any copy of the index. */
  generation: number;
  /** Damaged copies of the index, which are replaced from the others. */
  damaged: { slot: number; path: string; reason: string }[];
}

/** Opens the present drives. Rejects if there are too few, or if they belong to other stores. */
export async function openDrives(
  options: DriveOptions,
  takeId: () => string,
  openFilesMax: number,
  memory: FrameMemory,
): Promise<OpenedDrives> {
  const { folders } = options;
  const parity = options.parity ?? 1;
  const data = options.data ?? folders.length - parity;
  if (parity < 1 || data < 1 || data + parity > folders.length) {
    throw refuse(`${folders.length} drives cannot hold ${data}+${parity} shards`);
  }
  const known = chooseIdentity(folders);
  const isNew = folders.every((folder) => isEmptyDrive(folder) || isUnused(folder));
  if (known === undefined && !isNew) {
    throw refuse("a new store needs empty folders on all of its drives");
  }
  const identity: Omit<DriveIdentity, "slot"> = {
    format: 1,
    store: known?.store ?? takeId(),
    drives: folders.length,
    data,
    parity,
  };
  const all = folders.map(
    (folder, slot) => new Drive(slot, new StoreFolders(folder), openFilesMax, memory),
  );
  const drives = new DriveSet(all, data, parity);
  const locks = new Map<number, () => void>();
  try {
    for (const drive of all) {
      drive.absence = await takeDrive(drive, identity, isNew, locks);
    }
    return {
      drives,
      identity,
      locks,
      ...findCurrent(drives, isNew, options.inspectedBytesMax ?? 64 * 1024 * 1024),
    };
  } catch (error) {
    for (const unlock of locks.values()) unlock();
    throw error;
  }
}

/** Checks the identity of a drive and locks it. Resolves to the reason if that fails, else to `undefined`. */
export async function takeDrive(
  drive: Drive,
  identity: Omit<DriveIdentity, "slot">,
  isNew: boolean,
  locks: Map<number, () => void>,
): Promise<string | undefined> {
  const { folders, slot } = drive;
  const { root } = folders;
  if (!existsSync(root)) return "its folder is missing";
  let own = tryReadIdentity(root);
  if (own === undefined && (isNew || isReplacement(root))) {
    own = { ...identity, slot };
    await writeIdentity(root, own);
    rmSync(join(root, REPLACEMENT_MARK), { force: true });
  }
  const absence = judgeIdentity(own, identity, slot);
  if (absence !== undefined) return absence;
  const toSync = folders.make();
  locks.set(slot, lockStore(folders.lock));
  for (const folder of toSync) await drive.folderSync.sync(folder);
  clearCopy(folders.index);
  return undefined;
}

/** The identity of a drive; `undefined` if it has none, or it is unreadable. */
export function tryReadIdentity(folder: string): DriveIdentity | undefined {
  try {
    return readIdentity(folder);
  } catch {
    // A failing drive counts as absent.
    return undefined;
  }
}

/** The identity that most drives agree on, so that a single drive cannot shut out the others. */
export function chooseIdentity(folders: readonly string[]): DriveIdentity | undefined {
  const found = folders.map(tryReadIdentity).filter((identity) => identity !== undefined);
  const describe = ({ store, drives, data, parity }: DriveIdentity) =>
    JSON.stringify([store, drives, data, parity]);
  const count = (wanted: DriveIdentity) =>
    found.filter((other) => describe(other) === describe(wanted)).length;
  return found.reduce<DriveIdentity | undefined>(
    (best, other) => (best === undefined || count(other) > count(best) ? other : best),
    undefined,
  );
}

/** The reason why a drive does not belong in a slot, or `undefined`. */
export function judgeIdentity(
  found: DriveIdentity | undefined,
  wanted: Omit<DriveIdentity, "slot">,
  slot: number,
): string | undefined {
  if (found === undefined) {
    return `its folder is not a drive of this store, or its drive.json is damaged: "platform-vaultd fsck --repair" restores that; to make an empty folder a drive, put a file named ${REPLACEMENT_MARK} into it`;
  }
  if (found.store !== wanted.store) return "it belongs to another store";
  if (found.slot !== slot) return `it is drive ${found.slot}, not ${slot}`;
  const isSame =
    found.drives === wanted.drives && found.data === wanted.data && found.parity === wanted.parity;
  return isSame
    ? undefined
    : `it was made for ${found.drives} drives with ${found.data}+${found.parity} shards`;
}

// Its creation was interrupted: it has an identity and no acknowledged data.
function isUnused(folder: string): boolean {
  const { index, segments } = new StoreFolders(folder);
  if (tryReadIdentity(folder) === undefined || !isUnusedIndex(index)) return false;
  return !existsSync(segments) || readdirSync(segments).length === 0;
}

// Acknowledged data is on at least parity + 1 drives: if at most `parity` are missing, one of the others has it. Of two
// diverged copies, the one that a later start has committed to is right: that start has seen everything acknowledged
// before, and data that only the other copy has was never acknowledged. (Raft decides in the same way, by the term of the
// last entry and its index: Ongaro and Ousterhout, 2014, section 5.4.1.)
function findCurrent(
  drives: DriveSet,
  isNew: boolean,
  inspectedBytesMax: number,
): Pick<OpenedDrives, "current" | "generation" | "damaged"> {
  const { present, all, parity } = drives;
  if (present.length < all.length - parity) {
    const reasons = all
      .filter(({ absence }) => absence !== undefined)
      .map(({ folders, absence }) => `${folders.root}: ${absence}`);
    throw refuse(`too few drives are present (${reasons.join("; ")})`);
  }
  const judged = present.map(({ slot, folders }) => ({
    slot,
    path: folders.index,
    ...judgeIndex(folders, inspectedBytesMax),
  }));
  const damaged = judged.flatMap(({ slot, path, reason }) =>
    reason === undefined ? [] : [{ slot, path, reason }],
  );
  const positions = judged.flatMap(({ slot, position, reason }) =>
    position === undefined || reason !== undefined ? [] : [{ slot, ...position }],
  );
  const generation = Math.max(0, ...judged.map(({ position }) => position?.generation ?? 0));
  if (isNew) return { current: present.map(({ slot }) => slot), generation, damaged: [] };
  if (positions.length < all.length - parity) {
    const reasons = damaged.map(({ path, reason }) => `${path}: ${reason}`);
    throw refuse(
      `too few drives have an intact index (${reasons.join("; ")}). Nothing was changed. Run "platform-vaultd fsck" to see what can be restored`,
    );
  }
  const newest = positions.reduce((best, other) => (isBefore(best, other) ? other : best));
  const current = positions.filter((other) => !isBefore(other, newest)).map(({ slot }) => slot);
  return { current, generation, damaged };
}

function refuse(reason: string): StoreError {
  return new StoreError("ServiceUnavailable", reason);
}
