// Reads data that several drives have in full, from the first drive with an intact copy.
import type { BlobRecord } from "../model/blob.ts";
import type { ReadWindow } from "../model/read-window.ts";
import type { OpenBlob } from "./blob-reader.ts";
import type { DriveSet } from "./drive/drive-set.ts";
import type { Drive } from "./drive/drive.ts";

/** Called for copies and shards that are damaged or missing. */
export type DamageListener = (damage: { blob: BlobRecord; slot: number }) => void;

/** Opens a body in a segment. Rejects with `ENOENT` if no drive has it. */
export async function openCopy(
  drives: DriveSet,
  blob: BlobRecord & { place: { kind: "segment" } },
  onDamage: DamageListener,
): Promise<OpenBlob> {
  const candidates = drives.rank(blob.place.segment).filter((drive) => drive.isPresent);
  let failure: unknown = Object.assign(new Error("no drive has the segment"), { code: "ENOENT" });
  for (const [index, drive] of candidates.entries()) {
    try {
      const first = await drive.reader.open(blob);
      return new CopyBlob(blob, drive, first, candidates.slice(index + 1), onDamage);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

class CopyBlob implements OpenBlob {
  readonly #blob: BlobRecord;
  #drive: Drive;
  #open: OpenBlob;
  readonly #others: Drive[];
  readonly #onDamage: DamageListener;

  constructor(
    blob: BlobRecord,
    drive: Drive,
    open: OpenBlob,
    others: Drive[],
    onDamage: DamageListener,
  ) {
    this.#blob = blob;
    this.#drive = drive;
    this.#open = open;
    this.#others = others;
    this.#onDamage = onDamage;
  }

  async *read(
    start: number,
    end: number,
    window?: ReadWindow,
  ): AsyncGenerator<Buffer, void, undefined> {
    let at = start;
    for (;;) {
      try {
        for await (const chunk of this.#open.read(at, end, window)) {
          at += chunk.length;
          yield chunk;
        }
        return;
      } catch (error) {
        if (window?.isEnded === true) throw error;
        this.#onDamage({ blob: this.#blob, slot: this.#drive.slot });
        await this.#openNext(error);
      }
    }
  }

  close(): void {
    this.#open.close();
  }

  async #openNext(failure: unknown): Promise<void> {
    for (let drive = this.#others.shift(); drive !== undefined; drive = this.#others.shift()) {
      if (!drive.isPresent) continue;
      try {
        const open = await drive.reader.open(this.#blob);
        this.#open.close();
        this.#open = open;
        this.#drive = drive;
        return;
      } catch {
        // The next drive may have an intact copy; if no drive has one, the first error is thrown.
      }
    }
    throw failure;
  }
}
