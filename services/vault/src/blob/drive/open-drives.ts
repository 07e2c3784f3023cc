// Finds the drives of a store at its start: who they are, which are there, and which copy of the index is the newest.
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

/** Several drives: a folder each, in the order of their slots. */
export interface DriveOptions {
  folders: readonly string[];
  /** Drives that may be lost. Default 1. */
  parity?: number;
  /** Shards of data that large bodies are cut into. Default: as many as there are drives without parity. */
  data?: number;
  /** How often drives are looked at, in ms. Default 1 s. */
  checkEveryMs?: number;
  /** Bytes up to which a copy of the index is read as a whole at the start. Default 64 MiB. */
  inspectedBytesMax?: number;
}

/** The drives as found. */
export interface OpenedDrives {
  drives: DriveSet;
  identity: Omit<DriveIdentity, "slot">;
  /** The ways to let go of the drives, by slot. */
  locks: Map<number, () => void>;
  /** Slots whose copy of the index is the newest. */
  current: number[];
  /** The highest generation that any copy of the index knows of. */
  generation: number;
  /** Copies of the index that are damaged, and are made anew from the others. */
  damaged: { slot: number; path: string; reason: string }[];
}

/** Takes the drives that are there. Rejects where they are not enough, or belong to other stores. */
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
    throw refuse("a new store needs folders on all of its drives, with nothing in them");
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

/** Takes one drive: makes sure of who it is, locks it. Resolves to why it cannot be taken, or to undefined. */
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

/** The identity of a drive; undefined where there is none, or it cannot be read. */
export function tryReadIdentity(folder: string): DriveIdentity | undefined {
  try {
    return readIdentity(folder);
  } catch {
    // A drive that fails is a drive that is not there.
    return undefined;
  }
}

/** What most of the drives say of the store, so that one of them alone cannot shut out the others. */
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

/** Why a drive is not the one that belongs in a slot, or undefined. */
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

// Its making was cut short: it has an identity and nothing that was ever acknowledged.
function isUnused(folder: string): boolean {
  const { index, segments } = new StoreFolders(folder);
  if (tryReadIdentity(folder) === undefined || !isUnusedIndex(index)) return false;
  return !existsSync(segments) || readdirSync(segments).length === 0;
}

// What was acknowledged is on parity + 1 drives at least: where no more than `parity` are missing, one of the others has
// it. Of two copies that went on without each other the one is right that a later start has committed to: its start has
// seen all that was acknowledged before, and what is on the other one alone never was. (Raft decides alike, by the term of
// the last entry and its number: Ongaro and Ousterhout, 2014, section 5.4.1.)
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
    throw refuse(`too few drives are there (${reasons.join("; ")})`);
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
      `too few drives have an index that is whole (${reasons.join("; ")}). Nothing was changed. Run "platform-vaultd fsck" to see what can be restored`,
    );
  }
  const newest = positions.reduce((best, other) => (isBefore(best, other) ? other : best));
  const current = positions.filter((other) => !isBefore(other, newest)).map(({ slot }) => slot);
  return { current, generation, damaged };
}

function refuse(reason: string): StoreError {
  return new StoreError("ServiceUnavailable", reason);
}
