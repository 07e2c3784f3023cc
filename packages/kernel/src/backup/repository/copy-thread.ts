// A thread that copies pieces of files into a repository: it reads each once, hashes it, writes it, syncs it and verifies it.
import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  fsyncSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { setPriority } from "node:os";
import { basename, dirname, join } from "node:path";
import { parentPort, threadId, workerData } from "node:worker_threads";
import { BackupKey } from "../cipher.ts";
import { BackupError } from "../error.ts";
import type { Digest } from "../files.ts";
import type { CopyPlace, CopyReply, CopyRequest } from "./copy-messages.ts";
import { digestBytes, PIECE_BYTES_MAX } from "./object-names.ts";
import { type ObjectFolder, RepositoryObjects } from "./objects.ts";
import { explainFault, explainRead, FOLDER_MODE, nameDraft } from "./storage.ts";

/**
 * Bytes of one call. Linux caches a large write in large blocks of memory, which virtual machines have often given back to
 * their host: writes of 1 MiB then took 1.1 to 2.5 times the system time of a run with these.
 */
const CHUNK_BYTES = 64 * 1024;
const FILE_MODE = 0o600;
/** A third of the share of a core that others have. */
const NICE = 5;
const NO_FOLLOW = process.platform === "win32" ? 0 : constants.O_NOFOLLOW;

/** A repository's folder for one thread. Its calls block: it does not wait for the few threads that all calls of files share. */
class BlockingFolder implements ObjectFolder {
  readonly place: string;
  readonly #chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  #drafts = 0;

  constructor(place: string) {
    this.place = place;
  }

  digest(name: string, bytes: number): Promise<Digest | undefined> {
    return explainRead(name, this.#digest(join(this.place, name), bytes));
  }

  async matches(name: string, bytes: Buffer): Promise<boolean> {
    let same = 0;
    const isSame = (chunk: Buffer): boolean => {
      const expected = bytes.subarray(same, same + chunk.length);
      same += chunk.length;
      return chunk.equals(expected);
    };
    const path = join(this.place, name);
    const isWhole = await explainRead(name, this.#read(path, bytes.length, isSame));
    return isWhole === true && same === bytes.length;
  }

  read(name: string): never {
    throw new Error(`${name} is not read here`);
  }

  // oxlint-disable-next-line require-await -- so that it rejects
  async write(name: string, bytes: Buffer): Promise<void> {
    const path = join(this.place, name);
    this.#drafts += 1;
    const draft = join(this.place, nameDraft(threadId, this.#drafts));
    try {
      for (const file of [path, draft])
        mkdirSync(dirname(file), { recursive: true, mode: FOLDER_MODE });
      writeSynced(draft, bytes);
      renameSync(draft, path);
    } catch (error) {
      rmSync(draft, { force: true });
      throw explainFault(this.place, "written", error);
    }
  }

  async #digest(path: string, bytes: number): Promise<Digest> {
    const hash = createHash("sha256");
    let size = 0;
    await this.#read(path, bytes, (chunk) => {
      hash.update(chunk);
      size += chunk.length;
      return true;
    });
    return { size, sha256: hash.digest("hex") };
  }

  // One byte more than `bytes` at most, until `take` returns false; false then.
  // oxlint-disable-next-line require-await -- so that it rejects
  async #read(path: string, bytes: number, take: (chunk: Buffer) => boolean): Promise<boolean> {
    const fd = openSync(path, constants.O_RDONLY | NO_FOLLOW);
    try {
      for (let at = 0; at <= bytes;) {
        const length = Math.min(CHUNK_BYTES, bytes + 1 - at);
        const count = readSync(fd, this.#chunk, 0, length, at);
        if (count === 0) break;
        if (!take(this.#chunk.subarray(0, count))) return false;
        at += count;
      }
      return true;
    } finally {
      closeSync(fd);
    }
  }
}

function writeSynced(path: string, bytes: Buffer): void {
  const fd = openSync(path, "wx", FILE_MODE);
  try {
    for (let done = 0; done < bytes.length;) {
      const length = Math.min(CHUNK_BYTES, bytes.length - done);
      done += writeSync(fd, bytes, done, length);
    }
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function readPiece({ source, at, bytes }: CopyRequest, buffer: Buffer): Buffer {
  const fd = openSync(source, constants.O_RDONLY | NO_FOLLOW);
  try {
    let done = 0;
    while (done < bytes) {
      const count = readSync(fd, buffer, done, bytes - done, at + done);
      if (count === 0) break;
      done += count;
    }
    if (done === bytes) return buffer.subarray(0, bytes);
    throw new BackupError(`${source} has ${at + done} bytes, expected at least ${at + bytes}`);
  } finally {
    closeSync(fd);
  }
}

// Those who use the service come first. Linux has a priority for each thread.
function giveWay(): void {
  if (process.platform !== "linux") return;
  try {
    const thread = Number(basename(readlinkSync("/proc/thread-self")));
    setPriority(thread, NICE);
  } catch {
    // Without /proc it copies with the priority of the others.
  }
}

const port = parentPort;
if (port !== null) {
  giveWay();
  const { folder, key } = workerData as CopyPlace;
  const opened = key === undefined ? undefined : BackupKey.receive(key);
  const objects = new RepositoryObjects(new BlockingFolder(folder), opened);
  const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES_MAX);
  const copy = async (request: CopyRequest): Promise<CopyReply> => {
    const { number, path, known } = request;
    const bytes = readPiece(request, buffer);
    const plain = digestBytes(bytes);
    if (known?.bytes === bytes.length && (known.plain ?? known.sha256) === plain)
      return { number, piece: known, isAdded: false };
    objects.forgetAdded();
    const piece = await objects.put(path, bytes, plain);
    return { number, piece, isAdded: objects.added.size > 0 };
  };
  port.on("message", (request: CopyRequest) => {
    void copy(request)
      .catch((error: unknown): CopyReply => {
        const fault = error instanceof Error ? error.message : String(error);
        return { number: request.number, fault, isExpected: error instanceof BackupError };
      })
      .then((reply) => port.postMessage(reply));
  });
}
