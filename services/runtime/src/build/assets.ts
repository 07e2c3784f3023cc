// Assets of an executable: files that stay files, which are read from it without being copied to memory.
import { createHash } from "node:crypto";
import { opendirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { isServedPath } from "@platform/kernel/content";
import type { EmbeddedFile } from "@platform/service";

/** Bounds of {@link Assets}. */
interface AssetBounds {
  readonly filesMax: number;
  readonly bytesMax: number;
}

/** A folder among the assets. */
export interface AssetFolder {
  /** Names of its assets are this text and the path of the file. */
  readonly prefix: string;
  readonly files: Readonly<Record<string, EmbeddedFile>>;
}

/** Thrown if the files of a build exceed its bounds; the message names the folder. */
export class AssetError extends Error {}

const BOUNDS: AssetBounds = { filesMax: 10_000, bytesMax: 268_435_456 };

/** The assets of one build. */
export class Assets {
  readonly #bounds: AssetBounds;
  /** Absolute paths by name. */
  readonly #paths = new Map<string, string>();
  readonly #folders = new Map<string, AssetFolder>();
  #bytes = 0;

  constructor(bounds: AssetBounds = BOUNDS) {
    this.#bounds = bounds;
  }

  /** Absolute paths by name. */
  get paths(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#paths);
  }

  /**
   * Adds the files of a folder that `files()` would serve: neither hidden ones nor links out of the folder. Throws an
   * AssetError at a bound.
   */
  addFolder(folder: string): AssetFolder {
    const known = this.#folders.get(folder);
    if (known !== undefined) return known;
    const prefix = `files/${this.#folders.size}/`;
    const files: Record<string, EmbeddedFile> = {};
    const root = realpathSync(folder);
    for (const path of listFiles(root, "")) files[path] = this.#add(folder, prefix, path);
    const added = { prefix, files };
    this.#folders.set(folder, added);
    return added;
  }

  #add(folder: string, prefix: string, path: string): EmbeddedFile {
    const { filesMax, bytesMax } = this.#bounds;
    const file = join(folder, path);
    const sizeBytes = statSync(file).size;
    this.#bytes += sizeBytes;
    if (this.#paths.size >= filesMax || this.#bytes > bytesMax) {
      throw new AssetError(
        `${relative(process.cwd(), folder)}: an executable contains up to ${filesMax} files and ${bytesMax} bytes of files(): keep larger ones in storage, or in a folder with an absolute path, which is read at run time`,
      );
    }
    this.#paths.set(prefix + path, file);
    const digest = createHash("sha256").update(readFileSync(file)).digest("base64url");
    return { sizeBytes, etag: `"${digest.slice(0, 22)}"` };
  }
}

function* listFiles(root: string, below: string): Generator<string> {
  using folder = opendirSync(join(root, below));
  for (let entry = folder.readSync(); entry !== null; entry = folder.readSync()) {
    const path = below + entry.name;
    if (!isServedPath(path)) continue;
    const real = realpathSync(join(root, path));
    if (!real.startsWith(root + sep)) continue;
    const stats = statSync(real);
    // A link to a folder may lead to one of its parents.
    if (stats.isDirectory() && !entry.isSymbolicLink()) yield* listFiles(root, `${path}/`);
    else if (stats.isFile()) yield path;
  }
}
