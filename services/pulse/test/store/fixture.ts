// A store on a folder of its own for tests.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openLog, openNodeDisk } from "@platform/log";
import { Offsets } from "../../src/store/offsets.ts";
import { StateTable } from "../../src/store/state.ts";
import { Store } from "../../src/store/store.ts";
import { Topics } from "../../src/topic/topics.ts";

/** The parts that stand on one folder. */
export interface StoreFixture {
  store: Store;
  state: StateTable;
  topics: Topics;
  offsets: Offsets;
}

/** Opens the parts on `folder`. */
export async function openStore(folder: string): Promise<StoreFixture> {
  const store = new Store(await openLog({ disk: openNodeDisk(folder) }));
  const state = await StateTable.open(store);
  const topics = new Topics(store.log, { topicsPerTenantMax: 50, partitionsMax: 100 });
  const offsets = Offsets.open(store, state, topics, { groupsPerTenantMax: 5, offsetsMax: 100 });
  return { store, state, topics, offsets };
}

/** A folder that goes when the test ends. */
export function makeFolder(t: { after(done: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), "platform-pulse-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A record that holds `text`. */
export function recordOf(text: string) {
  return { key: null, value: Buffer.from(text), headers: [], timestamp: 1 };
}
