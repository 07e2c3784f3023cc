// The quarantine of unreferenced files: an index that was rolled back does not know newer files, so they are never deleted.
import { mkdirSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Drive } from "./drive/drive.ts";
import { renameFile } from "../disk/files.ts";

/** The contents of the quarantine, on all drives together. */
export interface QuarantineTotals {
  files: number;
  bytes: number;
}

const ATTEMPTS_MAX = 1_000;

/** The quarantine of each drive, in a folder of that drive. */
export class Quarantine {
  readonly #bytesMax: number;
  readonly #held = new Map<Drive, QuarantineTotals>();

  /** `bytesMax` limits the quarantine of each drive; further files stay where they are. */
  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get totals(): QuarantineTotals {
    const totals = { files: 0, bytes: 0 };
    for (const { files, bytes } of this.#held.values()) {
      totals.files += files;
      totals.bytes += bytes;
    }
    return totals;
  }

  /** Measures the folder: an operator may have emptied it. */
  async measure(drive: Drive): Promise<void> {
    const held = { files: 0, bytes: 0 };
    this.#held.set(drive, held);
    const names = await readdir(drive.folders.quarantine).catch(() => []);
    for (const name of names) {
      const found = await stat(join(drive.folders.quarantine, name)).catch(() => undefined);
      held.files += 1;
      held.bytes += found?.size ?? 0;
    }
  }

  /** Moves a file of the drive to quarantine. False if there is no room: then it stays. */
  async take(drive: Drive, path: string): Promise<boolean> {
    if (!this.#held.has(drive)) await this.measure(drive);
    const held = this.#held.get(drive)!;
    const { size } = await stat(path);
    if (held.bytes + size > this.#bytesMax) return false;
    const { quarantine } = drive.folders;
    mkdirSync(quarantine, { recursive: true, mode: 0o700 });
    await renameFile(path, await findFreeName(quarantine, basename(path)));
    drive.files.forget(path);
    held.files += 1;
    held.bytes += size;
    return true;
  }
}

async function findFreeName(folder: string, name: string): Promise<string> {
  const taken = new Set(await readdir(folder));
  for (let number = 0; number < ATTEMPTS_MAX; number += 1) {
    const candidate = number === 0 ? name : `${name}.${number}`;
    if (!taken.has(candidate)) return join(folder, candidate);
  }
  throw new Error(`${folder} holds too many files named ${name}`);
}
