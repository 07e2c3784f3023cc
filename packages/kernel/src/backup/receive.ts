// Receives a backup that a running service sends, and writes it to a folder.
import type { BackupKey } from "./cipher.ts";
import { BackupError } from "./error.ts";
import { collectBytes, FolderTree, Meter, writeStream, type BackupProgress } from "./files.ts";
import {
  DATA_FOLDER,
  decodeManifest,
  FILES_MAX,
  findPathProblem,
  MANIFEST_BYTES_MAX,
  MANIFEST_NAME,
  type BackupFile,
  type BackupManifest,
} from "./manifest.ts";
import { readTar, type TarEntry } from "./tar.ts";
import { writeFolder } from "./write.ts";

const DATA_PREFIX = `${DATA_FOLDER}/`;

/** Options of `receiveBackup`. */
export interface ReceiveOptions {
  /** Folder of the backup; must be missing or empty. Its parent must exist. */
  folder: string;
  /** The service that sends it. */
  service: string;
  /** Encrypts the files. */
  key?: BackupKey | undefined;
  bytesTotal?: number | undefined;
  onProgress?: ((progress: BackupProgress) => void) | undefined;
}

/**
 * Writes the archive that `streamBackup` yields to a folder, which has a temporary name until everything is on disk and
 * matches the manifest. Rejects with BackupError if the stream is incomplete or its files differ from the manifest.
 */
export async function receiveBackup(
  options: ReceiveOptions,
  stream: AsyncIterable<Uint8Array>,
): Promise<BackupManifest> {
  return writeFolder(options.folder, async (partial) => {
    const tree = new FolderTree(partial);
    const receiver = new Receiver(options, tree);
    for await (const entry of readTar(stream)) await receiver.take(entry);
    const manifest = receiver.finish();
    await tree.sync();
    return manifest;
  });
}

class Receiver {
  readonly #options: ReceiveOptions;
  readonly #tree: FolderTree;
  readonly #paths = new Set<string>();
  /** Digests of the files as sent, and as stored. */
  readonly #sent: BackupFile[] = [];
  readonly #stored: BackupFile[] = [];
  #manifest: BackupManifest | undefined;
  #bytes = 0;

  constructor(options: ReceiveOptions, tree: FolderTree) {
    this.#options = options;
    this.#tree = tree;
  }

  async take(entry: TarEntry): Promise<void> {
    const { path } = entry;
    if (this.#manifest !== undefined) throw this.#refuse(path, "it follows the manifest");
    if (path === MANIFEST_NAME) {
      const bytes = await collectBytes(entry.contents, MANIFEST_BYTES_MAX, MANIFEST_NAME);
      this.#manifest = decodeManifest(bytes, MANIFEST_NAME);
    } else if (path.startsWith(DATA_PREFIX)) await this.#takeFile(path, entry);
    else throw this.#refuse(path, "it is not part of a backup");
  }

  /** Compares the files with the manifest; returns the manifest to store. */
  finish(): BackupManifest {
    const { service, key } = this.#options;
    const manifest = this.#manifest;
    if (manifest === undefined) throw new BackupError("the stream ended before it was complete");
    if (manifest.service !== service) {
      throw new BackupError(`${manifest.service} sent the backup, not ${service}`);
    }
    if (!areEqual(manifest.files, this.#sent)) {
      throw new BackupError("the files were changed on the way: they differ from the manifest");
    }
    return key === undefined ? manifest : key.seal({ ...manifest, files: this.#stored });
  }

  async #takeFile(full: string, { contents }: TarEntry): Promise<void> {
    const { key } = this.#options;
    const path = full.slice(DATA_PREFIX.length);
    const problem = findPathProblem(path);
    if (problem !== undefined) throw this.#refuse(path, problem);
    if (this.#paths.has(path)) throw this.#refuse(path, "it was sent twice");
    if (this.#sent.length >= FILES_MAX) throw new BackupError(`more than ${FILES_MAX} files`);
    this.#paths.add(path);
    const target = await this.#tree.prepare(full);
    const sent = new Meter((count) => this.#count(count));
    const plain = sent.read(contents);
    if (key === undefined) {
      await writeStream(target, plain);
      this.#sent.push({ path, ...sent.digest() });
      return;
    }
    const stored = new Meter(() => undefined);
    await writeStream(target, stored.read(key.encrypt(path, plain)));
    this.#sent.push({ path, ...sent.digest() });
    this.#stored.push({ path, ...stored.digest() });
  }

  #count(more: number): void {
    this.#bytes += more;
    this.#options.onProgress?.({
      phase: "copying",
      files: this.#sent.length,
      bytes: this.#bytes,
      bytesTotal: this.#options.bytesTotal,
    });
  }

  #refuse(path: string, why: string): BackupError {
    return new BackupError(`${JSON.stringify(path)} in the stream is refused: ${why}`);
  }
}

function areEqual(listed: readonly BackupFile[], sent: readonly BackupFile[]): boolean {
  if (listed.length !== sent.length) return false;
  return listed.every(({ path, size, sha256 }, index) => {
    const other = sent[index]!;
    return path === other.path && size === other.size && sha256 === other.sha256;
  });
}
