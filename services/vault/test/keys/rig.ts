// Key rings and stores that use them, for one test each.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { createManualClock, type ManualClock } from "@platform/kernel/time";
import { KeyRing, type KeyRingOptions } from "../../src/keys/key-ring.ts";
import { createFileSource } from "../../src/keys/master-key.ts";
import type { Store } from "../../src/object-store.ts";
import type { StoreOptions } from "../../src/open-store.ts";
import { makeFolder, makeStore } from "../store/fixture.ts";

export interface KeyRig {
  folder: string;
  clock: ManualClock;
  ring: KeyRing;
  store: Store;
}

/** The options of a ring in a folder, with the master key in a file. */
export function describeRing(folder: string, more: Partial<KeyRingOptions> = {}): KeyRingOptions {
  return {
    path: join(folder, "access", "encryption-keys.json"),
    master: createFileSource(join(folder, "access", "master.key"), () => false),
    clock: createManualClock(),
    ...more,
  };
}

/** A ring of a folder, which is new by default. */
export function openRing(folder: string, more: Partial<KeyRingOptions> = {}): Promise<KeyRing> {
  return KeyRing.open(describeRing(folder, more), true);
}

/** A store with a ring. Changes of keys are not carried out before `store.maintenance.rewrap()`. */
export async function openRig(
  context: TestContext,
  options: Partial<StoreOptions> = {},
): Promise<KeyRig> {
  const folder = options.dataDir ?? makeFolder(context);
  const clock = createManualClock(Date.UTC(2030, 0, 1));
  const ring = await openRing(folder, { clock });
  const store = await makeStore(context, { dataDir: folder, keys: ring, ...options });
  return { folder, clock, ring, store };
}

/** Random bytes of a key in base64, as in secrets. */
export function makeSecret(): string {
  return randomBytes(32).toString("base64");
}
