// `platform-vaultd adopt-tier`: a restored store takes over the keys in remotes of the store that was backed up.
import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { StoreFolders } from "../disk/files.ts";
import type { VaultConfig } from "../config.ts";
import { openIndexWriter } from "../index/schema.ts";
import { lockStore } from "../index/store-lock.ts";
import { StoreError } from "../model/store-error.ts";

/**
 * Makes all keys that objects of a stopped store refer to its own: it will delete them with their objects. Replication rules of
 * the store that was backed up send from now on. Only right if no other store uses them any more.
 */
export function adoptTier(
  { data_dir: dataDir, drives }: Pick<VaultConfig, "data_dir" | "drives">,
  print: (line: string) => void,
): void {
  const all = (drives.length === 0 ? [dataDir] : drives).map((path) => new StoreFolders(path));
  const missing = all.find(({ index }) => !existsSync(index));
  if (missing !== undefined)
    throw new StoreError(
      "ServiceUnavailable",
      `${missing.index} is missing: all drives are needed`,
    );
  const locks = all.map(({ lock }) => lockStore(lock));
  try {
    const adopted = all.map(({ index }) => adopt(index));
    const ids = [...new Set(adopted.flat())];
    for (const id of ids) print(`adopted the keys of the store ${id}`);
    if (ids.length === 0) print("all keys in remotes are those of this store");
  } finally {
    for (const unlock of locks) unlock();
  }
}

function adopt(path: string): string[] {
  const connection = openIndexWriter(path);
  try {
    const { database } = connection;
    const ids = listForeign(database);
    for (const id of ids) {
      database.prepare("insert or ignore into facts values (?, '')").run(`adopted ${id}`);
    }
    return ids;
  } finally {
    connection.close();
  }
}

// The folder of a key is the id of the store that has written it.
function listForeign(database: DatabaseSync): string[] {
  const own = database.prepare("select value from facts where name = 'store'").get()?.["value"];
  const ids = new Set<string>();
  for (const { key } of database.prepare("select key from remote_blobs").iterate()) {
    const id = String(key).split("/").at(-2) ?? "";
    if (id !== own) ids.add(id);
  }
  const former = database.prepare("select value from facts where name = 'former store'").get();
  if (former !== undefined) ids.add(String(former["value"]));
  return [...ids].filter(
    (id) =>
      database.prepare("select 1 from facts where name = ?").get(`adopted ${id}`) === undefined,
  );
}
