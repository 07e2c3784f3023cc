// Lists of networks from the configuration and from files, compiled once for all routes and workers.
import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { buildAddressTrie } from "@platform/kernel/network";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import { NETWORKS_MAX } from "@platform/kernel/route-rules";
import type { NetworkListSpec } from "../shared-state/index.ts";
import { readAnyFile, type ReadFile } from "./confinement.ts";

const FILES_CHECK_MS = 2_000;
/** Checks after which a change that no reload has read is reported again. */
const REPEAT_CHECKS = 15;
const FILE_BYTES_MAX = 67_108_864;

interface KnownFile {
  /** The version that was read last, valid or not. */
  version: string;
  /** Absent if it was not valid. */
  list?: NetworkListSpec;
  /** The version that was reported last: a reload may fail before it reads the file. */
  reported?: string;
}

/** Compiles lists, and keeps those that the active configuration uses. */
export class NetworkLists {
  readonly #lists = new Map<string, NetworkListSpec>();
  readonly #files = new Map<string, KnownFile>();
  /** Digests and paths that the current build has used. */
  #used = new Set<string>();

  /** Begins a build of the whole configuration. */
  begin(): void {
    this.#used = new Set();
  }

  /** The build has succeeded: forgets what it has not used. After a failed one, all files are still watched. */
  end(): void {
    for (const known of [this.#lists, this.#files])
      for (const name of known.keys()) if (!this.#used.has(name)) known.delete(name);
  }

  /** Compiles networks; throws a RangeError with the first invalid one. */
  compile(networks: readonly string[]): NetworkListSpec {
    const digest = createHash("sha256").update(networks.join("\n")).digest("base64url");
    const list = this.#lists.get(digest) ?? { digest, trie: buildAddressTrie(networks) };
    this.#keep(list);
    return list;
  }

  /** Compiles the networks of a file, one per line. Throws if it cannot be read or a line is invalid. */
  read(path: string, read: ReadFile = readAnyFile): NetworkListSpec {
    const version = readVersion(path);
    const before = this.#files.get(path);
    const known = before?.version === version ? before.list : undefined;
    this.#used.add(path);
    this.#files.set(path, { version });
    const list = known ?? this.compile(parseNetworks(read(path, FILE_BYTES_MAX).toString("utf8")));
    this.#files.set(path, { version, list });
    this.#keep(list);
    return list;
  }

  /** True once for each change of a file. A file that cannot be read has not changed. */
  hasChanged(): boolean {
    let hasChanged = false;
    for (const [path, file] of this.#files) {
      try {
        const version = readVersion(path);
        if (version === file.version || version === file.reported) continue;
        file.reported = version;
        hasChanged = true;
      } catch {
        // The next reload reports the missing file; until then the list stays active.
      }
    }
    return hasChanged;
  }

  /** Changes that no build has read since are reported again. */
  repeatReports(): void {
    for (const file of this.#files.values()) delete file.reported;
  }

  #keep(list: NetworkListSpec): void {
    this.#used.add(list.digest);
    this.#lists.set(list.digest, list);
  }
}

/**
 * Calls `reload` when a file has changed. It logs its own failures, and is called again with the next change, or after 30 s
 * if it failed before it read the file.
 */
export function watchNetworkFiles(
  networks: NetworkLists,
  reload: () => Promise<unknown>,
): RepeatingTimer {
  let checks = 0;
  return every(
    FILES_CHECK_MS,
    async () => {
      if (++checks % REPEAT_CHECKS === 0) networks.repeatReports();
      if (networks.hasChanged()) await reload();
    },
    () => undefined,
  );
}

function readVersion(path: string): string {
  const { mtimeMs, size, ino } = statSync(path);
  return `${mtimeMs} ${size} ${ino}`;
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
