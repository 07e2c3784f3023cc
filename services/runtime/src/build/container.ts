// A built service as files for an image with Node: the script, its map, and the files that it serves.
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Bundle } from "./bundle.ts";

/** First line of the Dockerfile: a folder with it may be replaced. */
const MARK = "# Written by `platform build --target container`, which replaces this folder.\n";
const DOCKERFILE = "Dockerfile";
const SCRIPT = "app/service.cjs";
/** Features that a bundle uses are those of the Node that has built it. */
const MAJOR = Number.parseInt(process.versions.node, 10);

/** Throws if a path exists and is not a folder that an earlier build has written. */
export function checkContainerFolder(folder: string): void {
  if (!existsSync(folder)) return;
  const isFolder = statSync(folder).isDirectory();
  if (isFolder && readdirSync(folder).length === 0) return;
  const file = join(folder, DOCKERFILE);
  const isOwn = isFolder && existsSync(file) && readFileSync(file, "utf8").startsWith(MARK);
  if (!isOwn) {
    throw new Error(
      `${folder} exists and was not written by platform build: name another folder by --out`,
    );
  }
}

/** Writes the folder, which is replaced at the end. Returns the size of the files of the service in bytes. */
export function writeContainer(bundle: Bundle, dockerfile: string, folder: string): number {
  checkContainerFolder(folder);
  mkdirSync(dirname(folder), { recursive: true });
  const draft = mkdtempSync(join(dirname(folder), ".platform-build-"));
  let bytes = 0;
  const place = (path: string): string => {
    const target = join(draft, path);
    mkdirSync(dirname(target), { recursive: true });
    return target;
  };
  const write = (path: string, text: string): void => {
    writeFileSync(place(path), text);
    bytes += Buffer.byteLength(text);
  };
  try {
    write(SCRIPT, requireNode() + bundle.code);
    write(`${SCRIPT}.map`, bundle.map);
    for (const [path, source] of Object.entries(bundle.assets)) {
      const target = place(`app/${path}`);
      copyFileSync(source, target);
      bytes += statSync(target).size;
    }
    writeFileSync(place(DOCKERFILE), MARK + dockerfile);
    makeReadable(draft);
    rmSync(folder, { recursive: true, force: true });
    renameSync(draft, folder);
    return bytes;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** The service runs as another user than the one who builds, whose files may be private. */
function makeReadable(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
  }
}

/** A statement on the first line of the script, so that lines stay lines: another base image may have an older Node. */
function requireNode(): string {
  const message = `this service requires Node ${MAJOR} or newer, and this is Node `;
  return `if (!(Number.parseInt(process.versions.node, 10) >= ${MAJOR})) { process.stderr.write(${JSON.stringify(message)} + process.versions.node + "\\n"); process.exit(1); } `;
}
