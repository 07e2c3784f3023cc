// A disk in memory that tracks synced data and can produce the states after a crash.
import { LogError } from "../../src/errors.ts";
import type { Clock, Disk, DiskFile } from "../../src/disk/port.ts";
import type { Random } from "./random.ts";

type PendingWrite = { position: number; bytes: Buffer } | { length: number };

/** A file's contents: as read now, as on the medium, and the writes in between. */
interface Inode {
  now: Buffer;
  durable: Buffer;
  pending: PendingWrite[];
}

interface NameChange {
  name: string;
  inode: Inode | "folder" | undefined;
}

/** A folder: names now, names on the medium, and the changes in between, in order. */
interface Folder {
  now: Map<string, Inode | "folder">;
  durable: Map<string, Inode | "folder">;
  pending: NameChange[];
}

/** A disk operation; the fault function may return an error code for it. */
export type DiskOperation = "open" | "read" | "write" | "sync" | "rename" | "remove" | "folder";

const SECTOR_BYTES = 512;

/** The disk. `random` decides delays and crash states. */
export class SimDisk implements Disk {
  readonly #random: Random;
  readonly #folders = new Map<string, Folder>([["", emptyFolder()]]);
  #locked = false;
  /** Number of operations so far. */
  operations = 0;
  /** Capacity in bytes; writes beyond it fail with ENOSPC, half done. */
  capacity = Number.POSITIVE_INFINITY;
  /** Called before each operation; an error code makes it fail. */
  fault: (operation: DiskOperation, path: string) => string | undefined = () => undefined;
  /** Called before each operation. */
  onOperation: () => void = () => undefined;

  constructor(random: Random) {
    this.#random = random;
  }

  /** A possible state of the disk after a power cut now: unsynced data kept, dropped, torn or reordered. */
  crash(random: Random): SimDisk {
    const after = new SimDisk(random);
    const inodes = new Map<Inode, Inode>();
    for (const [path, folder] of this.#folders) {
      const names = new Map(folder.durable);
      // A journaling file system keeps the order of names, so a prefix of the changes survives.
      const kept = random.below(folder.pending.length + 1);
      for (const change of folder.pending.slice(0, kept)) applyName(names, change);
      const copy = emptyFolder();
      for (const [name, inode] of names) {
        const survived = inode === "folder" ? inode : surviving(inode, inodes, random);
        copy.now.set(name, survived);
        copy.durable.set(name, survived);
      }
      after.#folders.set(path, copy);
    }
    after.#dropUnreachable();
    return after;
  }

  /** The disk after the process was killed: the page cache survives. */
  kill(random: Random): SimDisk {
    const after = new SimDisk(random);
    const inodes = new Map<Inode, Inode>();
    for (const [path, folder] of this.#folders) {
      const copy = emptyFolder();
      for (const [name, inode] of folder.now) {
        let survived: Inode | "folder" = "folder";
        if (inode !== "folder") {
          const bytes = Buffer.from(inode.now);
          survived = inodes.get(inode) ?? { now: bytes, durable: Buffer.from(bytes), pending: [] };
          inodes.set(inode, survived);
        }
        copy.now.set(name, survived);
        copy.durable.set(name, survived);
      }
      after.#folders.set(path, copy);
    }
    return after;
  }

  /** Flips a byte of a file in place, like a failing medium. */
  damage(path: string, position: number): void {
    const inode = this.#file(path);
    for (const bytes of [inode.now, inode.durable]) {
      if (position < bytes.length) bytes[position] = bytes[position]! ^ 0x55;
    }
  }

  /** A file's bytes as read now. */
  bytesOf(path: string): Buffer {
    return this.#file(path).now;
  }

  async open(path: string, mode: "read" | "write" | "create"): Promise<DiskFile> {
    await this.#step("open", path);
    const [folder, name] = this.#locate(path);
    let inode = folder.now.get(name);
    if (inode === "folder") throw systemError("EISDIR", path);
    if (inode === undefined) {
      if (mode !== "create") throw systemError("ENOENT", path);
      inode = { now: Buffer.alloc(0), durable: Buffer.alloc(0), pending: [] };
      this.#changeName(folder, { name, inode });
    } else if (mode === "create") {
      truncate(inode, 0);
    }
    return this.#handle(inode, path);
  }

  async makeFolder(path: string): Promise<void> {
    await this.#step("folder", path);
    const parts = path.split("/");
    for (let depth = 1; depth <= parts.length; depth++) {
      const folder = parts.slice(0, depth).join("/");
      if (this.#folders.has(folder)) continue;
      const [parent, name] = this.#locate(folder);
      this.#folders.set(folder, emptyFolder());
      this.#changeName(parent, { name, inode: "folder" });
    }
  }

  async list(path: string): Promise<string[]> {
    await this.#step("read", path);
    return [...(this.#folders.get(path)?.now.keys() ?? [])];
  }

  async size(path: string): Promise<number | undefined> {
    await this.#step("read", path);
    const inode = this.#folders.get(parentOf(path))?.now.get(baseOf(path));
    return inode === undefined || inode === "folder" ? undefined : inode.now.length;
  }

  async rename(from: string, to: string): Promise<void> {
    await this.#step("rename", from);
    const [source, oldName] = this.#locate(from);
    const [target, newName] = this.#locate(to);
    const inode = source.now.get(oldName);
    if (inode === undefined) throw systemError("ENOENT", from);
    this.#changeName(target, { name: newName, inode });
    this.#changeName(source, { name: oldName, inode: undefined });
  }

  async remove(path: string): Promise<void> {
    await this.#step("remove", path);
    const folder = this.#folders.get(parentOf(path));
    if (folder?.now.has(baseOf(path)) === true) {
      this.#changeName(folder, { name: baseOf(path), inode: undefined });
    }
  }

  async removeFolder(path: string): Promise<void> {
    await this.#step("folder", path);
    const folder = this.#folders.get(path);
    if (folder === undefined || folder.now.size > 0) return;
    this.#folders.delete(path);
    const [parent, name] = this.#locate(path);
    this.#changeName(parent, { name, inode: undefined });
  }

  async syncFolder(path: string): Promise<void> {
    const folder = this.#folders.get(path);
    if (folder === undefined) throw systemError("ENOENT", path);
    const count = folder.pending.length;
    await this.#step("sync", path);
    for (const change of folder.pending.splice(0, count)) applyName(folder.durable, change);
  }

  async space(): Promise<{ freeBytes: number; totalBytes: number }> {
    return { freeBytes: this.capacity - this.#usedBytes(), totalBytes: this.capacity };
  }

  async lock(): Promise<() => Promise<void>> {
    if (this.#locked) throw new LogError("locked", "the simulated disk is locked");
    this.#locked = true;
    return async () => {
      this.#locked = false;
    };
  }

  #handle(inode: Inode, path: string): DiskFile {
    const file: DiskFile = {
      read: async (into, at, length, position) => {
        await this.#step("read", path);
        if (position >= inode.now.length) return 0;
        return inode.now.copy(into, at, position, Math.min(position + length, inode.now.length));
      },
      write: async (buffers, position) => {
        const bytes = Buffer.concat(buffers);
        const room = this.capacity - this.#usedBytes();
        const grows = Math.max(0, position + bytes.length - inode.now.length);
        if (grows > room) {
          write(inode, position, bytes.subarray(0, Math.max(0, bytes.length - grows)));
          await this.#step("write", path);
          throw systemError("ENOSPC", path);
        }
        // It may reach the medium at any time from now on, even before the call returns.
        write(inode, position, bytes);
        await this.#step("write", path);
      },
      sync: async () => {
        const captured = [...inode.pending];
        await this.#step("sync", path);
        inode.pending = inode.pending.filter((write) => !captured.includes(write));
        for (const write of captured) inode.durable = applyWrite(inode.durable, write);
      },
      writeDurably: async (buffers, position) => {
        await file.write(buffers, position);
        await file.sync();
      },
      truncate: async (length) => {
        await this.#step("write", path);
        truncate(inode, length);
      },
      size: async () => {
        await this.#step("read", path);
        return inode.now.length;
      },
      close: async () => undefined,
    };
    return file;
  }

  async #step(operation: DiskOperation, path: string): Promise<void> {
    this.operations++;
    this.onOperation();
    const code = this.fault(operation, path);
    for (let turns = this.#random.below(4); turns > 0; turns--) await Promise.resolve();
    if (code !== undefined) throw systemError(code, path);
  }

  #usedBytes(): number {
    let bytes = 0;
    for (const folder of this.#folders.values()) {
      for (const inode of folder.now.values()) if (inode !== "folder") bytes += inode.now.length;
    }
    return bytes;
  }

  #file(path: string): Inode {
    const [folder, name] = this.#locate(path);
    const inode = folder.now.get(name);
    if (inode === undefined || inode === "folder") throw systemError("ENOENT", path);
    return inode;
  }

  #locate(path: string): [Folder, string] {
    const folder = this.#folders.get(parentOf(path));
    if (folder === undefined) throw systemError("ENOENT", path);
    return [folder, baseOf(path)];
  }

  #changeName(folder: Folder, change: NameChange): void {
    applyName(folder.now, change);
    folder.pending.push(change);
  }

  #dropUnreachable(): void {
    for (const path of [...this.#folders.keys()].sort()) {
      if (path === "") continue;
      const parent = this.#folders.get(parentOf(path));
      if (parent?.now.get(baseOf(path)) !== "folder") this.#folders.delete(path);
    }
  }
}

/** A clock that only moves when it is told to. */
export class SimClock implements Clock {
  #now = 1_700_000_000_000;
  readonly #timers = new Set<{ at: number; run: () => void }>();

  now(): number {
    return this.#now;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#now + ms, run };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Moves the clock and runs due timers. */
  advance(ms: number): void {
    this.#now += ms;
    for (const timer of this.#timers) {
      if (timer.at > this.#now) continue;
      this.#timers.delete(timer);
      timer.run();
    }
  }
}

function emptyFolder(): Folder {
  return { now: new Map(), durable: new Map(), pending: [] };
}

function applyName(names: Map<string, Inode | "folder">, change: NameChange): void {
  if (change.inode === undefined) names.delete(change.name);
  else names.set(change.name, change.inode);
}

function write(inode: Inode, position: number, bytes: Buffer): void {
  const pending = { position, bytes };
  inode.now = applyWrite(inode.now, pending);
  inode.pending.push(pending);
}

function truncate(inode: Inode, length: number): void {
  inode.now = applyWrite(inode.now, { length });
  inode.pending.push({ length });
}

function applyWrite(content: Buffer, pending: PendingWrite): Buffer {
  if ("length" in pending) {
    const cut = Buffer.alloc(pending.length);
    content.copy(cut);
    return cut;
  }
  const { position, bytes } = pending;
  const end = position + bytes.length;
  const grown = end > content.length ? Buffer.alloc(end) : Buffer.from(content);
  if (end > content.length) content.copy(grown);
  bytes.copy(grown, position);
  return grown;
}

function surviving(inode: Inode, done: Map<Inode, Inode>, random: Random): Inode {
  const before = done.get(inode);
  if (before !== undefined) return before;
  let content = Buffer.from(inode.durable);
  for (const pending of inode.pending) {
    const fate = random.below(4);
    if (fate === 0) continue;
    if (fate <= 1 && "bytes" in pending) content = tear(content, pending, random);
    else content = Buffer.from(applyWrite(content, pending));
  }
  const survived = { now: content, durable: Buffer.from(content), pending: [] };
  done.set(inode, survived);
  return survived;
}

// A torn write: some of its sectors were written, in no particular order.
function tear(
  content: Buffer,
  { position, bytes }: { position: number; bytes: Buffer },
  random: Random,
): Buffer<ArrayBuffer> {
  let torn = Buffer.from(content);
  for (let at = 0; at < bytes.length;) {
    const size = Math.min(bytes.length - at, SECTOR_BYTES - ((position + at) % SECTOR_BYTES));
    if (random.chance(0.5)) {
      const sector = { position: position + at, bytes: bytes.subarray(at, at + size) };
      torn = Buffer.from(applyWrite(torn, sector));
    }
    at += size;
  }
  return torn;
}

function parentOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "" : path.slice(0, slash);
}

function baseOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function systemError(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}
