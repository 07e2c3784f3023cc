// A run recorded as system calls, and the states that a power cut could leave at any moment of it.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";

/** One effect on disk, or a line of the process's output, in the order of time. */
export type Effect =
  | { type: "create"; file: number; path: string }
  | { type: "write"; file: number; position: number; data: Buffer }
  | { type: "truncate"; file: number; length: number }
  /** Covers the file's writes before `since`, an index of an effect. */
  | { type: "sync"; file: number; since: number }
  | { type: "sync-folder"; path: string; since: number }
  | { type: "rename"; from: string; to: string }
  | { type: "unlink"; path: string }
  | { type: "said"; text: string };

interface Pending {
  call: string;
  since: number;
}

const CALL = /^(\d+) +(\w+)\((.*)\) += (-?\d+)/s;
const UNFINISHED = /^(\d+) +(.*) <unfinished \.\.\.>$/s;
const RESUMED = /^(\d+) +<\.\.\. (\w+) resumed>(.*)$/s;

/**
 * Parses the output of `strace -f -xx`. Paths are relative to `root`; files elsewhere are ignored. `before` are the files
 * that existed when the run began.
 */
export function parseRecording(
  text: string,
  root: string,
  before: readonly Effect[] = [],
): Effect[] {
  return new RecordingReader(root, before).read(text);
}

/** The files of a folder, as effects that create them, all synced. */
export function recordFiles(root: string): Effect[] {
  const files = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => !isLeftOut(path));
  const made = files.flatMap((path, index): Effect[] => [
    { type: "create", file: index + 1, path },
    { type: "write", file: index + 1, position: 0, data: readFileSync(join(root, path)) },
  ]);
  const since = made.length;
  return [
    ...made,
    ...files.map((_, index): Effect => ({ type: "sync", file: index + 1, since })),
    ...[...new Set(files.map((path) => dirname(path)))].map((path): Effect => ({
      type: "sync-folder",
      path,
      since,
    })),
  ];
}

// SQLite recreates its shared memory after a crash, and the lock file is empty.
function isLeftOut(path: string): boolean {
  return path.startsWith("..") || path.endsWith("-shm") || basename(path).startsWith("lock");
}

class RecordingReader {
  readonly #root: string;
  readonly #effects: Effect[] = [];
  readonly #pending = new Map<string, Pending>();
  /** Open files by descriptor. A file keeps its number when it is renamed. */
  readonly #open = new Map<number, { file: number; path: string; isFolder: boolean }>();
  /** File numbers by current path. */
  readonly #files = new Map<string, number>();
  #nextFile = 1;

  constructor(root: string, before: readonly Effect[]) {
    this.#root = root;
    this.#effects.push(...before);
    for (const effect of before) {
      if (effect.type !== "create") continue;
      this.#files.set(effect.path, effect.file);
      this.#nextFile = effect.file + 1;
    }
  }

  read(text: string): Effect[] {
    for (const line of text.split("\n")) {
      const unfinished = UNFINISHED.exec(line);
      if (unfinished !== null) {
        const call = unfinished[2]!;
        // The kernel frees the number first: before this call is seen to end, another thread may have received it.
        if (call.startsWith("close(")) {
          this.#open.delete(readDescriptor(call.slice("close(".length)));
          continue;
        }
        this.#pending.set(unfinished[1]!, { call, since: this.#effects.length });
        continue;
      }
      const resumed = RESUMED.exec(line);
      if (resumed === null) {
        this.#apply(line, this.#effects.length);
        continue;
      }
      const pending = this.#pending.get(resumed[1]!);
      this.#pending.delete(resumed[1]!);
      if (pending !== undefined) {
        this.#apply(`${resumed[1]} ${pending.call}${resumed[3]}`, pending.since);
      }
    }
    return this.#effects;
  }

  #apply(line: string, since: number): void {
    const match = CALL.exec(line);
    if (match === null || Number(match[4]) < 0) return;
    const [, , name, values = "", result] = match;
    const strings = [...values.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, hex]) => decode(hex!));
    const fd = readDescriptor(values);
    switch (name) {
      case "openat":
        this.#openFile(strings[0]!.toString(), values, Number(result));
        return;
      case "close":
        this.#open.delete(fd);
        return;
      case "write":
        // Unpositioned writes are not from the store.
        if (fd === 1) this.#effects.push({ type: "said", text: strings[0]!.toString() });
        return;
      case "pwrite64":
      case "pwritev":
        this.#write(fd, Buffer.concat(strings), Number(/(\d+)$/.exec(values)?.[1]), Number(result));
        return;
      case "ftruncate":
        this.#truncate(fd, Number(/(\d+)$/.exec(values)?.[1]));
        return;
      case "fsync":
      case "fdatasync":
        this.#sync(fd, since);
        return;
      case "rename":
        this.#rename(strings[0]!.toString(), strings[1]!.toString());
        return;
      case "unlink": {
        const path = this.#within(strings[0]!.toString());
        if (path === undefined) return;
        this.#files.delete(path);
        this.#effects.push({ type: "unlink", path });
        return;
      }
      default:
    }
  }

  #within(path: string): string | undefined {
    const inside = relative(this.#root, path);
    return isLeftOut(inside) ? undefined : inside;
  }

  #openFile(path: string, flags: string, fd: number): void {
    const inside = this.#within(path);
    if (inside === undefined) {
      this.#open.delete(fd);
      return;
    }
    // Folders are opened without write flags to be synced.
    const known = this.#files.get(inside);
    const isFolder = known === undefined && !flags.includes("O_CREAT");
    let file = known ?? 0;
    if (known === undefined && !isFolder) {
      file = this.#nextFile;
      this.#nextFile += 1;
      this.#files.set(inside, file);
      this.#effects.push({ type: "create", file, path: inside });
    }
    this.#open.set(fd, { file, path: inside, isFolder });
  }

  #write(fd: number, data: Buffer, position: number, count: number): void {
    const open = this.#open.get(fd);
    if (open === undefined) return;
    this.#effects.push({ type: "write", file: open.file, position, data: data.subarray(0, count) });
  }

  #truncate(fd: number, length: number): void {
    const open = this.#open.get(fd);
    if (open !== undefined) this.#effects.push({ type: "truncate", file: open.file, length });
  }

  #sync(fd: number, since: number): void {
    const open = this.#open.get(fd);
    if (open === undefined) return;
    this.#effects.push(
      open.isFolder
        ? { type: "sync-folder", path: open.path, since }
        : { type: "sync", file: open.file, since },
    );
  }

  #rename(from: string, to: string): void {
    const [inFrom, inTo] = [this.#within(from), this.#within(to)];
    if (inFrom === undefined || inTo === undefined) return;
    const file = this.#files.get(inFrom);
    this.#files.delete(inFrom);
    if (file !== undefined) this.#files.set(inTo, file);
    this.#effects.push({ type: "rename", from: inFrom, to: inTo });
  }
}

function readDescriptor(values: string): number {
  return Number(/^\d+/.exec(values)?.[0] ?? -1);
}

function decode(hex: string): Buffer {
  return Buffer.from(hex.replaceAll("\\x", ""), "hex");
}

/** The output of the process before the effect with the index `end`. */
export function collectSaid(effects: readonly Effect[], end: number): string {
  return effects
    .slice(0, end)
    .flatMap((effect) => (effect.type === "said" ? [effect.text] : []))
    .join("");
}

const SECTOR_BYTES = 512;

/**
 * Writes into `root` one of the states in which a power cut just before the effect `end` may leave the disks, one in each
 * of the folders `drives` (`""` is the root). Synced data is intact; every other write may be present, missing or torn, and
 * names are as at any moment since the last sync of their folder. `random` returns numbers from 0 to below 1.
 */
export function buildCrashState(
  effects: readonly Effect[],
  end: number,
  root: string,
  drives: readonly string[],
  random: () => number,
): void {
  if (existsSync(root)) emptyFolder(root);
  for (const drive of drives) {
    for (const folder of ["segments", "staging", "files"]) {
      mkdirSync(join(root, drive, folder), { recursive: true });
    }
    for (let index = 0; index < 256; index += 1) {
      const folder = index.toString(16).padStart(2, "0");
      mkdirSync(join(root, drive, "files", folder), { recursive: true });
    }
  }
  // One cut may lose much, another little, or everything on one disk and nothing on another.
  const keep = new Map(drives.map((drive) => [drive, random() * 1.4 - 0.2]));
  const keepOf = (path: string) => keep.get(path.split("/")[0]!) ?? keep.get("") ?? 1;
  const contents = buildContents(effects, end, random, keepOf);
  for (const [path, file] of buildNames(effects, end, random)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), contents.get(file) ?? Buffer.alloc(0));
  }
}

// The folders of the last state are reused.
function emptyFolder(root: string): void {
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) rmSync(join(entry.parentPath, entry.name));
  }
}

function buildContents(
  effects: readonly Effect[],
  end: number,
  random: () => number,
  keepOf: (path: string) => number,
): Map<number, Buffer> {
  const synced = new Map<number, number>();
  const keeps = new Map<number, number>();
  for (const effect of effects.slice(0, end)) {
    if (effect.type === "create") keeps.set(effect.file, keepOf(effect.path));
    if (effect.type === "sync") {
      synced.set(effect.file, Math.max(synced.get(effect.file) ?? 0, effect.since));
    }
  }
  // Allocated once, with the maximum size of the file: a copy for each write would take most of the time.
  const growing = new Map<number, { bytes: Buffer; length: number }>();
  const capacities = new Map<number, number>();
  for (const effect of effects.slice(0, end)) {
    if (effect.type !== "write") continue;
    const reach = effect.position + effect.data.length;
    capacities.set(effect.file, Math.max(capacities.get(effect.file) ?? 0, reach));
  }
  for (const [index, effect] of effects.slice(0, end).entries()) {
    if (effect.type !== "write" && effect.type !== "truncate") continue;
    const isSynced = index < (synced.get(effect.file) ?? 0);
    const keep = keeps.get(effect.file) ?? 1;
    if (!isSynced && random() > keep) continue;
    let content = growing.get(effect.file);
    if (content === undefined) {
      content = { bytes: Buffer.alloc(capacities.get(effect.file) ?? 0), length: 0 };
      growing.set(effect.file, content);
    }
    if (effect.type === "truncate") {
      content.bytes.fill(0, effect.length);
      content.length = effect.length;
      continue;
    }
    const isTorn = !isSynced && keep < 1 && random() < 0.3;
    const pieces = isTorn ? tear(effect.data, random) : [{ at: 0, data: effect.data }];
    content.length = Math.max(content.length, effect.position + effect.data.length);
    for (const { at, data } of pieces) data.copy(content.bytes, effect.position + at);
  }
  return new Map(
    [...growing].map(([file, { bytes, length }]) => [file, bytes.subarray(0, length)]),
  );
}

// Sectors reach the disk as a whole, in any order.
function tear(data: Buffer, random: () => number): { at: number; data: Buffer }[] {
  const pieces = [];
  for (let at = 0; at < data.length; at += SECTOR_BYTES) {
    if (random() < 0.5) pieces.push({ at, data: data.subarray(at, at + SECTOR_BYTES) });
  }
  return pieces;
}

// File systems keep directory operations in order: each folder is in a state since its last sync.
function buildNames(
  effects: readonly Effect[],
  end: number,
  random: () => number,
): Map<string, number> {
  const synced = new Map<string, number>();
  for (const effect of effects.slice(0, end)) {
    if (effect.type === "sync-folder") {
      const folder = effect.path === "" ? "." : effect.path;
      synced.set(folder, Math.max(synced.get(folder) ?? 0, effect.since));
    }
  }
  const names = new Map<string, number>();
  const atOnce = new Map<string, number>();
  const cuts = new Map<string, number>();
  const isKept = (path: string, index: number) => {
    const folder = dirname(path);
    let cut = cuts.get(folder);
    if (cut === undefined) {
      const from = synced.get(folder) ?? 0;
      cut = from + Math.floor(random() * (end - from + 1));
      cuts.set(folder, cut);
    }
    return index < cut;
  };
  for (const [index, effect] of effects.slice(0, end).entries()) {
    if (effect.type === "create") {
      atOnce.set(effect.path, effect.file);
      if (isKept(effect.path, index)) names.set(effect.path, effect.file);
    } else if (effect.type === "unlink") {
      atOnce.delete(effect.path);
      if (isKept(effect.path, index)) names.delete(effect.path);
    } else if (effect.type === "rename") {
      const file = atOnce.get(effect.from);
      atOnce.delete(effect.from);
      if (file === undefined) continue;
      atOnce.set(effect.to, file);
      if (isKept(effect.to, index)) names.set(effect.to, file);
      if (isKept(effect.from, index)) names.delete(effect.from);
    }
  }
  return names;
}
