// The page's files, as `npm run build:console` writes them, held in memory.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { createEtag } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";

/** The folder that the build writes, in this installation. */
export const PAGE_FOLDER = fileURLToPath(new URL("../../../../apps/console/dist", import.meta.url));
/** The bundle is looked at again after this time; files of `assets/` never change. */
const REREAD_MS = 1_000;
/** A build that has not ended within this time was interrupted. */
const BUILDING_MS_MAX = 120_000;
const FILES_MAX = 500;
const BYTES_MAX = 32 * 1024 * 1024;
const ENCODINGS = [
  { name: "br", extension: ".br" },
  { name: "gzip", extension: ".gz" },
] as const;
const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".webmanifest": "application/manifest+json",
  ".woff2": "font/woff2",
};

/** Name of an encoding in Content-Encoding. */
export type Encoding = (typeof ENCODINGS)[number]["name"];

/** A file with its precompressed forms. */
export interface PageFile {
  type: string;
  etag: string;
  body: Uint8Array<ArrayBuffer>;
  encoded: ReadonlyMap<Encoding, Uint8Array<ArrayBuffer>>;
  /** True if the name contains a hash of the content. */
  isImmutable: boolean;
}

/** State of the bundle. */
export type BundleState =
  | { kind: "ready"; files: ReadonlyMap<string, PageFile> }
  | { kind: "building" }
  | { kind: "missing" };

/** The bundle's files in `folder`. While `<folder>.building` exists, a build is in flight. */
export class Bundle {
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #main: string;
  #state: BundleState = { kind: "missing" };
  #readAtMs = Number.NEGATIVE_INFINITY;
  #version = "";

  /** `main` is a file that changes with each build. */
  constructor(clock: Clock, folder = PAGE_FOLDER, main = "index.html") {
    this.#folder = folder;
    this.#clock = clock;
    this.#main = main;
  }

  /** The current state; files by path below the folder, with slashes. */
  read(): BundleState {
    const now = this.#clock.monotonicMs();
    if (now - this.#readAtMs < REREAD_MS) return this.#state;
    this.#readAtMs = now;
    const version = this.#findVersion();
    if (version === undefined) {
      this.#version = "";
      this.#state = { kind: this.#isBuilding() ? "building" : "missing" };
    } else if (version !== this.#version) {
      this.#state = { kind: "ready", files: readFiles(this.#folder) };
      this.#version = version;
    }
    return this.#state;
  }

  // The folder gets its name when the build is complete.
  #findVersion(): string | undefined {
    const found = statSync(join(this.#folder, this.#main), { throwIfNoEntry: false });
    return found === undefined ? undefined : `${found.mtimeMs} ${found.size} ${found.ino}`;
  }

  #isBuilding(): boolean {
    const found = statSync(`${this.#folder}.building`, { throwIfNoEntry: false });
    return found !== undefined && this.#clock.now() - found.mtimeMs < BUILDING_MS_MAX;
  }
}

function readFiles(folder: string): ReadonlyMap<string, PageFile> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  if (names.length > FILES_MAX) throw new Error(`${folder} has more than ${FILES_MAX} files`);
  const contents = new Map(names.map((name) => [name, new Uint8Array(readFileSync(name))]));
  const bytes = [...contents.values()].reduce((sum, body) => sum + body.length, 0);
  if (bytes > BYTES_MAX) throw new Error(`${folder} is larger than ${BYTES_MAX} bytes`);
  const files = new Map<string, PageFile>();
  for (const [name, body] of contents) {
    const type = TYPES[extname(name)];
    if (type === undefined) continue;
    const path = name.slice(folder.length + 1).replaceAll("\\", "/");
    const encoded = ENCODINGS.flatMap(({ name: encoding, extension }) => {
      const found = contents.get(`${name}${extension}`);
      return found === undefined ? [] : [[encoding, found] as const];
    });
    files.set(path, {
      type,
      etag: createEtag(body),
      body,
      encoded: new Map(encoded),
      isImmutable: path.startsWith("assets/"),
    });
  }
  return files;
}
