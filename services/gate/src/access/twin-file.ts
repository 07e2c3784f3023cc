// A file with a copy beside it: a lost or damaged one is restored from the other, so that lost state is never an empty one.
//
//   NAME         the content
//   .NAME.copy   the content again, and the checksum of the one that it replaced; written first
//
// A crash between the two writes leaves the copy ahead by one, which its `previous` shows.
import { createHash } from "node:crypto";
import { rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { replaceFile } from "@platform/kernel/files";
import { z } from "zod";
import { readTextFile, removeFile, toStorageError } from "./durable-file.ts";

/** Options of {@link TwinFile}. */
export interface TwinFileOptions {
  path: string;
  bytesMax: number;
  /** Throws an Error that describes the fault of a content that is not usable. */
  check: (text: string) => void;
  /** Called with each fault that was repaired; without it, faults are overcome in memory only. */
  onRepair: ((fault: string) => void) | undefined;
}

interface Copy {
  previous: string | null;
  /** Null if the file was removed. */
  text: string | null;
}

const copySchema = z.strictObject({
  version: z.literal(1),
  previous: z.string().nullable(),
  sha256: z.string(),
  text: z.string().nullable(),
});

export class TwinFile {
  readonly #options: TwinFileOptions;
  readonly #copyPath: string;

  constructor(options: TwinFileOptions) {
    this.#options = options;
    const { path } = options;
    this.#copyPath = join(dirname(path), `.${basename(path)}.copy`);
  }

  /** Returns the content; undefined if there is none. Throws an Error if both files are damaged, or contradict each other. */
  async read(): Promise<string | undefined> {
    const { path } = this.#options;
    const own = await this.#readOwn();
    const copy = await this.#readCopy();
    if (copy === undefined) {
      if (own instanceof Error) throw own;
      // Written by a version without copies, or the copy is lost.
      if (own !== undefined && this.#options.onRepair !== undefined) await this.write(own);
      return own;
    }
    if (copy instanceof Error || own instanceof Error) return this.#choose(own, copy);
    const held = copy.text ?? undefined;
    if (own === held) return own;
    if (own !== undefined && digest(own) !== copy.previous) {
      throw new Error(
        `it differs from its copy ${this.#copyPath}, and one of them is an older version: remove that one`,
      );
    }
    return this.#repair(
      held,
      own === undefined ? `${path} was missing` : `${path} was not current`,
    );
  }

  /** Replaces the content; undefined removes it. Durable when it resolves. */
  async write(text: string | undefined): Promise<void> {
    const { path, bytesMax } = this.#options;
    const before = await readTextFile(path, bytesMax).catch(() => "");
    if (text === undefined && before === undefined) {
      await rm(this.#copyPath, { force: true });
      return;
    }
    const previous = before === undefined ? null : digest(before);
    await replaceFile(this.#copyPath, encodeCopy({ previous, text: text ?? null }));
    try {
      if (text === undefined) await removeFile(path);
      else await replaceFile(path, text);
    } catch (error) {
      // The change is refused: the next start must not find it in the copy.
      await removeFile(this.#copyPath);
      throw error;
    }
    if (text === undefined) await removeFile(this.#copyPath);
  }

  async #readOwn(): Promise<string | undefined | Error> {
    const { path, bytesMax, check } = this.#options;
    try {
      const text = await readTextFile(path, bytesMax);
      if (text !== undefined) check(text);
      return text;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  async #readCopy(): Promise<Copy | undefined | Error> {
    const { bytesMax, check } = this.#options;
    try {
      const text = await readTextFile(this.#copyPath, 2 * bytesMax);
      if (text === undefined) return undefined;
      const copy = copySchema.parse(JSON.parse(text));
      if (copy.sha256 !== digestCopy(copy)) throw new Error("its checksum is wrong");
      if (copy.text !== null) check(copy.text);
      return copy;
    } catch {
      return new Error(`${this.#copyPath} is damaged`);
    }
  }

  async #choose(own: string | undefined | Error, copy: Copy | Error): Promise<string | undefined> {
    const { path, onRepair } = this.#options;
    if (!(copy instanceof Error)) {
      // Kept, since it may have been edited by hand.
      if (onRepair !== undefined) await rename(path, `${path}.damaged`);
      return this.#repair(copy.text ?? undefined, `${path} was damaged (now ${path}.damaged)`);
    }
    if (own instanceof Error) throw own;
    // Something was written, and there is no knowing what.
    if (own === undefined) throw new Error(`it is missing, and ${copy.message}`);
    return this.#repair(own, copy.message);
  }

  async #repair(text: string | undefined, fault: string): Promise<string | undefined> {
    const { path, onRepair } = this.#options;
    if (onRepair === undefined) return text;
    onRepair(`${fault}: restored from the copy beside it`);
    try {
      await this.write(text);
    } catch (error) {
      throw toStorageError(path, error);
    }
    return text;
  }
}

function encodeCopy(copy: Copy): string {
  return `${JSON.stringify({ version: 1, sha256: digestCopy(copy), ...copy })}\n`;
}

function digestCopy({ previous, text }: Copy): string {
  return digest(JSON.stringify([previous, text]));
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
