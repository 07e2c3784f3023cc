// Files of a folder as responses to GET and HEAD: conditions, ranges, index files, precompressed siblings.
import { constants, type Stats } from "node:fs";
import { open, realpath, type FileHandle } from "node:fs/promises";
import { join, sep } from "node:path";
import { chooseCoding, type ContentCoding } from "./accept-encoding.ts";
import { evaluateConditions, type ReadField, type Validators } from "./conditions.ts";
import { findMediaType } from "./media-type.ts";
import { type ByteRange, describeRange, layOutRanges, type Segment } from "./ranges.ts";

/** Options of {@link openStaticFile}. */
export interface StaticFileOptions {
  /** GET or HEAD: a range of HEAD is ignored. */
  method: string;
  /** Fields of the request. */
  read: ReadField;
  /** File that stands for a folder; "": folders are not found. */
  index: string;
  /** Value of Cache-Control. */
  cacheControl: string;
  /** Sends `name.br`, `name.zst` or `name.gz` if it exists, is not older than the file, and the client accepts it. */
  isPrecompressed?: boolean;
  /** Folders of which the real path of `root` must be one or lie below one. Default: anywhere. */
  within?: readonly string[];
}

/** A response; `content` must be closed by its receiver. */
export interface StaticFileAnswer {
  status: 200 | 206 | 304 | 412 | 416;
  /** Fields without Content-Length. */
  headers: (readonly [name: string, value: string])[];
  /** Bytes to send, undefined for a status without content. */
  content?: FileContent;
}

/** The content of a response from a file. */
export interface FileContent {
  handle: FileHandle;
  segments: readonly Segment[];
  /** Bytes of all segments. */
  length: number;
}

interface OpenedFile {
  handle: FileHandle;
  stats: Stats;
}

const SUFFIXES: Readonly<Record<ContentCoding, string>> = { br: ".br", zstd: ".zst", gzip: ".gz" };
const CODINGS: readonly ContentCoding[] = ["br", "zstd", "gzip"];
const NOT_FOUND = new Set([
  "ENOENT",
  "ENOTDIR",
  "EACCES",
  "EPERM",
  "ENAMETOOLONG",
  "ELOOP",
  "ENXIO",
  "EISDIR",
]);
const PIECE_BYTES = 65_536;

/**
 * Opens the file that a decoded path names below `root`. A path that ends in `/` names a folder and gets its index file;
 * a folder named without `/` returns `folder`: relative links of its page resolve only with the slash. Returns undefined
 * if the file does not exist, is hidden (except below `.well-known`), is not a regular file, or if a link leads out of
 * `root`.
 */
export async function openStaticFile(
  root: string,
  path: string,
  options: StaticFileOptions,
): Promise<StaticFileAnswer | "folder" | undefined> {
  if (!isServedPath(path)) return undefined;
  try {
    const realRoot = await realpath(root);
    if (options.within !== undefined && !(await isWithin(realRoot, options.within))) {
      return undefined;
    }
    const isFolder = path === "" || path.endsWith("/");
    if (isFolder && options.index === "") return undefined;
    const real = await resolveBelow(realRoot, join(path, isFolder ? options.index : ""));
    const file = real === undefined ? undefined : await openFile(real);
    if (real === undefined || file === undefined) return undefined;
    if (file === "folder") return isFolder ? undefined : "folder";
    return await answer(realRoot, real, file, options);
  } catch (error) {
    if (NOT_FOUND.has((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

/** Reads the content of an open file in pieces. Throws if the file became shorter. */
export async function* readPieces({
  handle,
  segments,
}: Pick<FileContent, "handle" | "segments">): AsyncGenerator<Buffer> {
  for (const segment of segments) {
    if (Buffer.isBuffer(segment)) yield segment;
    else yield* readRange(handle, segment);
  }
}

async function* readRange(handle: FileHandle, { start, end }: ByteRange): AsyncGenerator<Buffer> {
  for (let at = start; at < end;) {
    const size = Math.min(PIECE_BYTES, end - at);
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(size), 0, size, at);
    if (bytesRead === 0) throw new Error("the file became shorter while it was sent");
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** False for hidden names, except `.well-known`, and for characters that no name of a file has here. */
export function isServedPath(path: string): boolean {
  if (/[\\\0]/.test(path)) return false;
  return path.split("/").every((part) => !part.startsWith(".") || part === ".well-known");
}

/** The real path of a file below the root; undefined if a link leads out of the root. */
async function resolveBelow(realRoot: string, path: string): Promise<string | undefined> {
  const real = await realpath(join(realRoot, path));
  return isBelow(real, realRoot) ? real : undefined;
}

async function isWithin(real: string, folders: readonly string[]): Promise<boolean> {
  for (const folder of folders) {
    const realFolder = await realpath(folder).catch(() => undefined);
    if (realFolder !== undefined && isBelow(real, realFolder)) return true;
  }
  return false;
}

function isBelow(real: string, folder: string): boolean {
  return real === folder || real.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

async function openFile(real: string): Promise<OpenedFile | "folder" | undefined> {
  // Without O_NONBLOCK, opening a pipe waits for its writer; a link that has just replaced the file is not followed.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
  const handle = await open(real, flags);
  let isKept = false;
  try {
    const stats = await handle.stat();
    isKept = stats.isFile();
    if (isKept) return { handle, stats };
    return stats.isDirectory() ? "folder" : undefined;
  } finally {
    if (!isKept) await handle.close();
  }
}

async function answer(
  realRoot: string,
  real: string,
  file: OpenedFile,
  options: StaticFileOptions,
): Promise<StaticFileAnswer> {
  let used = file;
  let coding: ContentCoding | undefined;
  let isKept = false;
  try {
    if (options.isPrecompressed === true) {
      const found = await openSibling(realRoot, real, file.stats, options);
      if (found !== undefined) {
        await file.handle.close();
        ({ coding } = found);
        used = found.file;
      }
    }
    const described = describe(real, used, coding, options);
    isKept = described.content !== undefined;
    return described;
  } finally {
    if (!isKept) await used.handle.close();
  }
}

async function openSibling(
  realRoot: string,
  real: string,
  original: Stats,
  { read }: StaticFileOptions,
): Promise<{ file: OpenedFile; coding: ContentCoding } | undefined> {
  const rejected = new Set<ContentCoding>();
  for (;;) {
    const offered = CODINGS.filter((coding) => !rejected.has(coding));
    const coding = chooseCoding(read("accept-encoding"), offered);
    if (coding === "identity") return undefined;
    const file = await tryOpen(realRoot, real + SUFFIXES[coding]);
    if (file !== undefined && file.stats.mtimeMs >= original.mtimeMs) return { file, coding };
    await file?.handle.close();
    rejected.add(coding);
  }
}

async function tryOpen(realRoot: string, path: string): Promise<OpenedFile | undefined> {
  try {
    const real = await resolveBelow(realRoot, path.slice(realRoot.length));
    const file = real === undefined ? undefined : await openFile(real);
    return file === "folder" ? undefined : file;
  } catch (error) {
    if (NOT_FOUND.has((error as NodeJS.ErrnoException).code ?? "")) return undefined;
    throw error;
  }
}

function describe(
  real: string,
  { handle, stats }: OpenedFile,
  coding: ContentCoding | undefined,
  options: StaticFileOptions,
): StaticFileAnswer {
  const { size, mtimeMs } = stats;
  const suffix = coding === undefined ? "" : `-${coding}`;
  const etag = `"${size.toString(36)}-${Math.trunc(mtimeMs).toString(36)}${suffix}"`;
  const validators = { etag, modifiedMs: mtimeMs, sizeBytes: size };
  const { status, headers, body } = describeFile(findMediaType(real), validators, options);
  if (options.isPrecompressed === true && (body !== undefined || status === 304)) {
    headers.push(["Vary", "Accept-Encoding"]);
  }
  if (body === undefined) return { status, headers };
  if (coding !== undefined) headers.push(["Content-Encoding", coding]);
  return { status, headers, content: { handle, ...body } };
}

/** Status and fields of the answer for a representation, and its body, if any. */
export function describeFile(
  type: string,
  validators: Validators,
  options: StaticFileOptions,
): Omit<StaticFileAnswer, "content"> & { body?: Omit<FileContent, "handle"> } {
  const { etag, modifiedMs, sizeBytes: size } = validators;
  const common: StaticFileAnswer["headers"] = [
    ["ETag", etag],
    ["Cache-Control", options.cacheControl],
  ];
  if (modifiedMs !== undefined) {
    common.push(["Last-Modified", new Date(modifiedMs).toUTCString()]);
  }
  const typed = (shown: string): StaticFileAnswer["headers"] => [
    ["Content-Type", shown],
    ...common,
    ["Accept-Ranges", "bytes"],
  ];
  const result = evaluateConditions(options.method, options.read, validators, Date.now());
  switch (result.status) {
    case 304:
      return { status: 304, headers: common };
    case 412:
      return { status: 412, headers: [] };
    case 416:
      return { status: 416, headers: [["Content-Range", `bytes */${size}`]] };
    case 200:
      return {
        status: 200,
        headers: typed(type),
        body: { segments: [{ start: 0, end: size }], length: size },
      };
    case 206: {
      const [range, ...more] = result.ranges;
      if (range === undefined || more.length > 0) {
        const { type: shown, ...body } = layOutRanges(result.ranges, size, type);
        return { status: 206, headers: typed(shown), body };
      }
      const headers = [...typed(type), ["Content-Range", describeRange(range, size)] as const];
      return { status: 206, headers, body: { segments: [range], length: range.end - range.start } };
    }
    default:
      return result satisfies never;
  }
}
