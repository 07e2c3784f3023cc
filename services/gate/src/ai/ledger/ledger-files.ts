// Reads the ledger files of all workers as they grow, and those that a former process has left.
import { closeSync, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import {
  parseFileName,
  parseRecord,
  type ReservedRecord,
  type SettledRecord,
} from "./ledger-record.ts";

const READ_BYTES = 262_144;
const LF = 0x0a;

/** Options of {@link LedgerFiles}. */
export interface LedgerFilesOptions {
  readonly folder: string;
  /** A request has ended; without a result if its worker has ended first. */
  readonly onSettled: (reserved: ReservedRecord, settled: SettledRecord | undefined) => void;
  readonly onFault: (file: string, fault: string) => void;
}

/** Progress of reading the files of one worker. */
export interface StoredInstance {
  instance: string;
  /** Reservations without a result. */
  open: ReservedRecord[];
  /** Files, and how many bytes of them have been read. */
  files: { name: string; bytes: number }[];
}

interface Instance {
  readonly open: Map<number, ReservedRecord>;
  readonly files: Map<string, ReadFile>;
}

interface ReadFile {
  readonly sequence: number;
  bytes: number;
  /** It has lines that cannot be read: it is kept. */
  isDamaged: boolean;
}

/** The files of a folder. */
export class LedgerFiles {
  readonly #options: LedgerFilesOptions;
  readonly #instances = new Map<string, Instance>();
  readonly #live = new Set<string>();

  constructor(options: LedgerFilesOptions) {
    this.#options = options;
  }

  /** Continues from a snapshot. */
  restore(stored: readonly StoredInstance[]): void {
    for (const { instance, open, files } of stored) {
      this.#instances.set(instance, {
        open: new Map(open.map((reserved) => [reserved.id, reserved])),
        files: new Map(
          files.map(({ name, bytes }) => {
            const sequence = parseFileName(name)?.sequence ?? 0;
            return [name, { sequence, bytes, isDamaged: false }];
          }),
        ),
      });
    }
  }

  /** The state for a snapshot. */
  list(): StoredInstance[] {
    return [...this.#instances].map(([instance, { open, files }]) => ({
      instance,
      open: [...open.values()],
      files: [...files].map(([name, { bytes }]) => ({ name, bytes })),
    }));
  }

  /** The worker runs and writes files. */
  addLive(instance: string): void {
    this.#live.add(instance);
  }

  /** The worker has ended. */
  removeLive(instance: string): void {
    this.#live.delete(instance);
  }

  /** Reads what is new, and ends the reservations of workers that have ended. True if anything has changed. */
  read(): boolean {
    let isChanged = false;
    for (const name of listFiles(this.#options.folder))
      isChanged = this.#readFile(name) || isChanged;
    for (const [instance, { open }] of this.#instances) {
      if (this.#isAlive(instance) || open.size === 0) continue;
      for (const reserved of open.values()) this.#options.onSettled(reserved, undefined);
      open.clear();
      isChanged = true;
    }
    return isChanged;
  }

  /** Cost of a tenant's open reservations. */
  sumReserved(tenant: string, day: number): bigint {
    let sum = 0n;
    for (const { open } of this.#instances.values()) {
      for (const reserved of open.values())
        if (reserved.tenant === tenant && reserved.day === day) sum += BigInt(reserved.pico);
    }
    return sum;
  }

  /** Cost of all open reservations of a day. */
  listReserved(day: number): { tenant: string; pico: bigint }[] {
    return [...this.#instances.values()].flatMap(({ open }) =>
      [...open.values()]
        .filter((reserved) => reserved.day === day)
        .map(({ tenant, pico }) => ({ tenant, pico: BigInt(pico) })),
    );
  }

  /** Names of files of which everything is part of the sums, and to which nothing more is written. */
  listFinished(): string[] {
    return [...this.#instances].flatMap(([instance, { files }]) => {
      const latest = Math.max(...[...files.values()].map(({ sequence }) => sequence));
      const isLive = this.#isAlive(instance);
      return [...files].flatMap(([name, { sequence, isDamaged }]) =>
        isDamaged || (isLive && sequence === latest) ? [] : [name],
      );
    });
  }

  /** Removes files that a stored snapshot contains. */
  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) {
      await rm(join(this.#options.folder, name), { force: true });
      const { instance = "" } = parseFileName(name) ?? {};
      const found = this.#instances.get(instance);
      found?.files.delete(name);
      if (found?.files.size === 0 && !this.#isAlive(instance)) this.#instances.delete(instance);
    }
  }

  // A process that is being replaced may still be finishing its requests.
  #isAlive(instance: string): boolean {
    if (this.#live.has(instance)) return true;
    const pid = Number(instance.split("-")[1]);
    if (pid === process.pid) return false;
    try {
      process.kill(pid, 0);
      return true;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === "EPERM";
    }
  }

  #readFile(name: string): boolean {
    const { instance, sequence } = parseFileName(name)!;
    const found = this.#instances.get(instance) ?? { open: new Map(), files: new Map() };
    this.#instances.set(instance, found);
    const file = found.files.get(name) ?? { sequence, bytes: 0, isDamaged: false };
    found.files.set(name, file);
    const before = file.bytes;
    const descriptor = openSync(join(this.#options.folder, name), "r");
    try {
      const { size } = fstatSync(descriptor);
      while (file.bytes < size && this.#readLines(descriptor, name, file, found, size));
    } finally {
      closeSync(descriptor);
    }
    return file.bytes !== before;
  }

  // Reads the next lines; false if the rest of the file is no whole line.
  #readLines(
    descriptor: number,
    name: string,
    file: ReadFile,
    instance: Instance,
    size: number,
  ): boolean {
    const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, size - file.bytes));
    const length = readSync(descriptor, buffer, 0, buffer.length, file.bytes);
    const end = buffer.lastIndexOf(LF, length - 1) + 1;
    for (let start = 0; start < end;) {
      const lineEnd = buffer.indexOf(LF, start);
      this.#onLine(buffer.toString("utf8", start, lineEnd), name, file, instance);
      start = lineEnd + 1;
    }
    file.bytes += end;
    return end > 0;
  }

  #onLine(line: string, name: string, file: ReadFile, { open }: Instance): void {
    const record = parseRecord(line);
    if (record === undefined) {
      file.isDamaged = true;
      this.#options.onFault(name, "a line has a wrong checksum, and is not counted");
      return;
    }
    if (record.k === "reserved") open.set(record.id, record);
    else if (record.k === "settled") {
      const reserved = open.get(record.id);
      open.delete(record.id);
      if (reserved !== undefined) this.#options.onSettled(reserved, record);
    }
  }
}

function listFiles(folder: string): string[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  return names.filter((name) => parseFileName(name) !== undefined).sort();
}
