// The stores of crash tests: in one folder, or over several drives in it.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openStore, type StoreOptions } from "../../src/open-store.ts";
import type { Store } from "../../src/object-store.ts";

const MIB = 1024 * 1024;
const WAIT_MS = 60_000;

/** The folders of the drives; the root itself if there is only one. */
export function nameDrives(root: string, drives: number): string[] {
  if (drives === 1) return [root];
  return Array.from({ length: drives }, (_, slot) => join(root, `drive-${slot}`));
}

/** Opens a store with frequent upkeep. One of its drives may be lost. */
export function openTestStore(
  root: string,
  drives: number,
  more: Partial<StoreOptions> = {},
): Promise<Store> {
  return openStore({
    dataDir: drives === 1 ? root : join(root, "data"),
    reserveBytes: 0,
    partBytesMin: 1,
    scrubBytesPerSecond: 1024 * MIB,
    healBytesPerSecond: 1024 * MIB,
    ...(drives === 1
      ? {}
      : { drives: { folders: nameDrives(root, drives), parity: 1, checkEveryMs: 20 } }),
    ...more,
  });
}

/** Replaces a drive by an empty one with the replacement mark. */
export function replaceDrive(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "replace-drive"), "");
}

/** Waits until all drives are complete. Throws with the states of the drives if that takes too long. */
export async function waitUntilWhole(store: Store): Promise<void> {
  const end = performance.now() + WAIT_MS;
  while (store.listDrives().some(({ state }) => state !== "present")) {
    if (performance.now() > end) throw new Error(JSON.stringify(store.listDrives()));
    await store.maintenance.checkDrives();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
