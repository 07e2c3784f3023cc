// Lists of networks from the configuration and from files, compiled once for all routes and workers.
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { buildAddressTrie } from "@platform/kernel/network";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { NETWORKS_MAX } from "../config/route-limits.ts";
import type { NetworkListSpec } from "../shared-state/index.ts";

const FILES_CHECK_MS = 2_000;
const FILE_BYTES_MAX = 67_108_864;

interface CachedFile {
  version: string;
  list: NetworkListSpec;
}

/** Compiles lists, and keeps those of the last two builds of the configuration. */
export class NetworkLists {
  #lists = new Map<string, NetworkListSpec>();
  #former = new Map<string, NetworkListSpec>();
  #files = new Map<string, CachedFile>();
  #formerFiles = new Map<string, CachedFile>();

  /** Begins a build of the configuration: forgets what the previous one has not used. */
  begin(): void {
    this.#former = this.#lists;
    this.#lists = new Map();
    this.#formerFiles = this.#files;
    this.#files = new Map();
  }

  /** Compiles networks; throws a RangeError with the first invalid one. */
  compile(networks: readonly string[]): NetworkListSpec {
    const digest = createHash("sha256").update(networks.join("\n")).digest("base64url");
    const known = this.#lists.get(digest) ?? this.#former.get(digest);
    const list = known ?? { digest, trie: buildAddressTrie(networks) };
    this.#lists.set(digest, list);
    return list;
  }

  /** Compiles the networks of a file, one per line. Throws if it cannot be read or a line is invalid. */
  read(path: string): NetworkListSpec {
    const version = readVersion(path);
    const known = this.#files.get(path) ?? this.#formerFiles.get(path);
    const list =
      known?.version === version ? known.list : this.compile(parseNetworks(readBounded(path)));
    this.#lists.set(list.digest, list);
    this.#files.set(path, { version, list });
    return list;
  }

  /** True if a file of the last build has changed since. A file that cannot be read has not. */
  hasChanged(): boolean {
    for (const [path, { version }] of this.#files) {
      try {
        if (readVersion(path) !== version) return true;
      } catch {
        // The next reload reports the missing file; until then the list stays active.
      }
    }
    return false;
  }
}

/** Calls `reload` when a file has changed. It logs its own failures; the check is repeated until the file is usable. */
export function watchNetworkFiles(
  networks: NetworkLists,
  reload: () => Promise<unknown>,
): RepeatingTimer {
  return every(
    FILES_CHECK_MS,
    async () => {
      if (networks.hasChanged()) await reload();
    },
    () => undefined,
  );
}

function readVersion(path: string): string {
  const { mtimeMs, size, ino } = statSync(path);
  return `${mtimeMs} ${size} ${ino}`;
}

function readBounded(path: string): string {
  const bytes = readFileSync(path);
  if (bytes.length > FILE_BYTES_MAX) {
    throw new RangeError(`the file is larger than ${FILE_BYTES_MAX} bytes`);
  }
  return bytes.toString("utf8");
}

function parseNetworks(text: string): string[] {
  const networks: string[] = [];
  for (const line of text.split("\n")) {
    const network = line.replace(/#.*/, "").trim();
    if (network === "") continue;
    if (networks.length >= NETWORKS_MAX) {
      throw new RangeError(`the file has more than ${NETWORKS_MAX} networks`);
    }
    networks.push(network);
  }
  return networks;
}
