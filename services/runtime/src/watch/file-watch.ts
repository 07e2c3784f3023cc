// Watches files and folders by their names: also those that do not exist yet, and those whose folders or links are
// replaced. A watch of the system follows an inode; one of a replaced folder reports nothing any more.
//
//   /a/b/c.ts   →   `a` in /, `b` in /a, `c.ts` in /a/b; for a link, the same of its target
import { lstatSync, readdirSync, readlinkSync, statSync, watch, type FSWatcher } from "node:fs";
import { basename, dirname, isAbsolute, join, parse, resolve, sep } from "node:path";

const FOLDERS_MAX = 1_000;
const PATHS_MAX = 10_000;
/** Links in one path, as in Linux. */
const LINKS_MAX = 40;
/** A branch switch replaces many files. */
const SCAN_MS = 20;

/** Kind of a watched path: a file, or a folder with all that is in it. */
export type WatchedKind = "file" | "folder";

interface Watched {
  readonly kind: WatchedKind;
  readonly path: string;
  /** Undefined until it is known. */
  identity: string | undefined;
}

interface Folder {
  readonly watcher: FSWatcher;
  readonly inode: string;
  /** Names whose events are changes of what is watched. */
  own: ReadonlySet<string> | "all";
  /** Names on the way to something that is watched. */
  between: ReadonlySet<string>;
}

/** A set of watched paths. */
export class FileWatch {
  readonly #onChange: () => void;
  readonly #paths = new Map<string, Watched>();
  readonly #folders = new Map<string, Folder>();
  #timer: NodeJS.Timeout | undefined;

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /** Watches a path, which need not exist. At most 10 000. */
  add(kind: WatchedKind, path: string): void {
    const key = `${kind} ${path}`;
    if (this.#paths.has(key) || this.#paths.size >= PATHS_MAX) return;
    this.#paths.set(key, { kind, path, identity: undefined });
    // A load reports many files together.
    this.#scanSoon(0);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#paths.clear();
    for (const { watcher } of this.#folders.values()) watcher.close();
    this.#folders.clear();
  }

  #scanSoon(afterMs: number): void {
    this.#timer ??= setTimeout(() => this.#scan(), afterMs);
  }

  #scan(): void {
    this.#timer = undefined;
    this.#watchFolders();
    // After the watches: what changed before them is seen here, what changes later by them.
    let hasChanged = false;
    for (const watched of this.#paths.values()) {
      const identity = identify(watched);
      hasChanged ||= watched.identity !== undefined && watched.identity !== identity;
      watched.identity = identity;
    }
    if (hasChanged) this.#onChange();
  }

  #forget(place: string): void {
    for (const [path, { watcher }] of this.#folders) {
      if (path !== place && !path.startsWith(place + sep)) continue;
      watcher.close();
      this.#folders.delete(path);
    }
  }

  #watchFolders(): void {
    const own = new Map<string, Set<string> | "all">();
    const between = new Map<string, Set<string>>();
    for (const { kind, path } of this.#paths.values()) {
      const entries = listEntries(path);
      for (const [folder, name] of entries) add(between, folder, name);
      if (kind === "folder") own.set(path, "all");
      const [folder, name] = [dirname(path), basename(path)];
      const names = own.get(folder);
      if (kind === "file" && names !== "all") own.set(folder, (names ?? new Set()).add(name));
    }
    const needed = new Set([...own.keys(), ...between.keys()]);
    for (const [path, { watcher, inode }] of this.#folders) {
      if (needed.has(path) && readInode(path) === inode) continue;
      watcher.close();
      this.#folders.delete(path);
    }
    for (const path of needed) {
      const names = {
        own: own.get(path) ?? new Set<string>(),
        between: between.get(path) ?? new Set<string>(),
      };
      const known = this.#folders.get(path);
      if (known === undefined) this.#watchFolder(path, names);
      else Object.assign(known, names);
    }
  }

  #watchFolder(path: string, names: Pick<Folder, "own" | "between">): void {
    const inode = readInode(path);
    if (inode === undefined || this.#folders.size >= FOLDERS_MAX) return;
    try {
      const watcher = watch(path, (event, name) => this.#onEvent(path, event, name));
      // A removed folder: its entry in the one above reports it.
      watcher.on("error", () => this.#scanSoon(SCAN_MS));
      this.#folders.set(path, { watcher, inode, ...names });
    } catch {
      // Not readable, or the system's limit of watches: changes below it are seen by the others.
    }
  }

  #onEvent(path: string, event: string, name: string | null): void {
    const folder = this.#folders.get(path);
    if (folder === undefined) return;
    const { own, between } = folder;
    // Created, removed or moved: the number of the old inode may be used again at once.
    if (event === "rename" && name !== null && between.has(name)) this.#forget(join(path, name));
    if (name === null || own === "all" || own.has(name)) {
      // Two writes of the same size may have the same time: the event itself is the change.
      this.#onChange();
      this.#scanSoon(SCAN_MS);
    } else if (between.has(name)) this.#scanSoon(SCAN_MS);
  }
}

function add(map: Map<string, Set<string>>, folder: string, name: string): void {
  const names = map.get(folder);
  if (names === undefined) map.set(folder, new Set([name]));
  else names.add(name);
}

/** The entries of folders that decide what a path is: its parts, and those of the targets of links. */
function listEntries(path: string): [folder: string, name: string][] {
  const entries: [string, string][] = [];
  let pending = [path];
  for (let links = 0; pending.length > 0 && links <= LINKS_MAX; links += 1) {
    const next: string[] = [];
    for (const one of pending) {
      const { root } = parse(one);
      let folder = root;
      for (const name of one.slice(root.length).split(sep).filter(Boolean)) {
        entries.push([folder, name]);
        const place = join(folder, name);
        const target = readLink(place);
        if (target === undefined) {
          folder = place;
          continue;
        }
        const absolute = isAbsolute(target) ? target : resolve(folder, target);
        next.push(absolute);
        folder = absolute;
      }
    }
    pending = next;
  }
  return entries;
}

function readLink(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    return undefined;
  }
}

function readInode(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false, bigint: true });
  return found?.isDirectory() === true ? `${found.dev}:${found.ino}` : undefined;
}

function identify({ kind, path }: Watched): string {
  try {
    const { dev, ino, mtimeNs, size } = statSync(path, { bigint: true });
    const names = kind === "folder" ? readdirSync(path).toSorted().join("/") : "";
    return `${dev}:${ino}:${mtimeNs}:${size}:${names}`;
  } catch {
    return "missing";
  }
}
