// The objects of a repository: found by their content, verified whenever they are read.
import type { BackupKey } from "../cipher.ts";
import { BackupError } from "../error.ts";
import { collectBytes, type Digest, findDifference } from "../files.ts";
import type { Piece } from "./format.ts";
import { digestBytes, nameObject, OBJECT_BYTES_MAX, PIECE_BYTES_MAX } from "./object-names.ts";
import type { RepositoryStorage } from "./storage.ts";

const STEP_BYTES = 1024 * 1024;

/** The part of a storage that keeps objects. */
export interface ObjectFolder extends Pick<
  RepositoryStorage,
  "place" | "read" | "digest" | "write" | "noteWritten"
> {
  /** True if an object has exactly these bytes, whose hash is its name: comparing takes a tenth of hashing them again. */
  matches?(name: string, bytes: Buffer): Promise<boolean>;
}

/** Reads and writes objects, encrypted if there is a key. */
export class RepositoryObjects {
  readonly #storage: ObjectFolder;
  readonly #key: BackupKey | undefined;
  readonly #added = new Map<string, number>();

  constructor(storage: ObjectFolder, key: BackupKey | undefined) {
    this.#storage = storage;
    this.#key = key;
  }

  /** Objects that were written since the last `forgetAdded`, with their sizes. */
  get added(): ReadonlyMap<string, number> {
    return this.#added;
  }

  /** Begins another run. */
  forgetAdded(): void {
    this.#added.clear();
  }

  /** Stores the bytes of the file or list `path`, unless they are there, and reads them again. `plain` is their hash. */
  async put(path: string, bytes: Buffer, plain: string): Promise<Piece> {
    if (this.#key === undefined) {
      await this.#write(plain, bytes);
      return { bytes: bytes.length, sha256: plain };
    }
    const sealed = await collectBytes(
      this.#key.encrypt(path, yieldSteps(bytes)),
      OBJECT_BYTES_MAX,
      path,
    );
    const sha256 = digestBytes(sealed);
    await this.#write(sha256, sealed);
    return { bytes: bytes.length, sha256, stored: sealed.length, plain };
  }

  /** Notes that a thread has stored a piece as `put` does, or has found it. */
  noteStored({ sha256, bytes, stored = bytes }: Piece, isAdded: boolean): void {
    if (isAdded) this.#added.set(sha256, stored);
    this.#storage.noteWritten?.(nameObject(sha256));
  }

  /** The bytes of a piece of `path`. Rejects with BackupError if they are missing or damaged. */
  async get(path: string, piece: Piece): Promise<Buffer> {
    const stored = await this.#readStored(piece);
    if (piece.stored === undefined) return stored;
    if (this.#key === undefined) {
      throw new BackupError(`${this.#storage.place} is encrypted: a passphrase is required`);
    }
    const opened = this.#key.decrypt(path, yieldSteps(stored));
    const bytes = await collectBytes(opened, PIECE_BYTES_MAX, path);
    if (bytes.length === piece.bytes) return bytes;
    throw new BackupError(`${path}: ${bytes.length} bytes, expected ${piece.bytes}`);
  }

  /** Reads the stored bytes of a piece, and verifies them. */
  async verify({ sha256, bytes, stored: size = bytes }: Piece): Promise<void> {
    const name = nameObject(sha256);
    const found = await this.#storage.digest(name, size);
    if (found === undefined) throw new BackupError(`${name}: missing`);
    requireSame(name, found, { size, sha256 });
  }

  async #readStored({ sha256, bytes, stored: size = bytes }: Piece): Promise<Buffer> {
    const name = nameObject(sha256);
    const found = await this.#storage.read(name, OBJECT_BYTES_MAX);
    if (found === undefined) throw new BackupError(`${name}: missing`);
    requireSame(name, { size: found.length, sha256: digestBytes(found) }, { size, sha256 });
    return found;
  }

  async #write(sha256: string, bytes: Buffer): Promise<void> {
    const name = nameObject(sha256);
    // Of a former snapshot, or a killed run. A damaged one is replaced.
    const isWhole = await this.verify({ bytes: bytes.length, sha256 }).then(
      () => true,
      (error: unknown) => {
        if (error instanceof BackupError) return false;
        throw error;
      },
    );
    if (isWhole) {
      // A killed run has not synced its folder.
      this.#storage.noteWritten?.(name);
      return;
    }
    await this.#storage.write(name, bytes);
    if (this.#storage.matches === undefined) await this.verify({ bytes: bytes.length, sha256 });
    else if (!(await this.#storage.matches(name, bytes)))
      throw new BackupError(`${name}: differs from what was written`);
    this.#added.set(sha256, bytes.length);
  }
}

function requireSame(name: string, found: Digest, expected: Digest): void {
  const difference = findDifference(expected, found);
  if (difference !== undefined) throw new BackupError(`${name}: ${difference}`);
}

// oxlint-disable-next-line require-await -- the cipher takes a stream
async function* yieldSteps(bytes: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += STEP_BYTES) yield bytes.subarray(at, at + STEP_BYTES);
}
