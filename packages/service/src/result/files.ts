// Files of a folder as results.
import { constants, type Stats } from "node:fs";
import { open, realpath, type FileHandle } from "node:fs/promises";
import { extname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { HttpError } from "../error/http-error.ts";
import type { ServiceRequest } from "../request/request.ts";

/** Options of {@link files}. */
export interface FilesOptions {
  /** File of a folder; default `index.html`. */
  index?: string;
  /** Value of Cache-Control; default `no-cache`: clients revalidate by ETag. */
  cacheControl?: string;
}

/** A file as a result; the server closes it. */
export interface FileAnswer {
  readonly handle: FileHandle;
  readonly status: 200 | 206 | 304;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly start: number;
  readonly length: number;
}

/** Wraps a file, so that it is not mistaken for an object. */
export class FileResult {
  readonly answer: FileAnswer;

  constructor(answer: FileAnswer) {
    this.answer = answer;
  }
}

const TYPES: Readonly<Record<string, string>> = {
  ".avif": "image/avif",
  ".css": "text/css; charset=utf-8",
  ".csv": "text/csv; charset=utf-8",
  ".gif": "image/gif",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".map": "application/json",
  ".md": "text/markdown; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".mp3": "audio/mpeg",
  ".mp4": "video/mp4",
  ".pdf": "application/pdf",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".txt": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
  ".webm": "video/webm",
  ".webmanifest": "application/manifest+json",
  ".webp": "image/webp",
  ".woff": "font/woff",
  ".woff2": "font/woff2",
  ".xml": "application/xml",
};

/**
 * Creates a handler that serves the files of a folder: the path below it is the parameter `*`. Hidden files and links
 * out of the folder are not found. ETag, If-None-Match and single ranges are supported.
 *
 * ```ts
 * route("GET", "/assets/*", files("./public"));
 * ```
 */
export function files(
  folder: string | URL,
  options: FilesOptions = {},
): (request: ServiceRequest) => Promise<FileResult> {
  const root = resolve(folder instanceof URL ? fileURLToPath(folder) : folder);
  return async ({ params, headers }) => {
    const path = findPath(root, params["*"] ?? "");
    const opened = await openBelow(root, path, options.index ?? "index.html");
    try {
      return new FileResult(describeFile(opened, headers, options));
    } catch (error) {
      await opened.handle.close();
      throw error;
    }
  };
}

interface OpenedFile {
  handle: FileHandle;
  stats: Stats;
  path: string;
}

function findPath(root: string, below: string): string {
  const parts = below.split("/").filter(Boolean);
  if (parts.some((part) => part.startsWith(".") || /[\\\0]/.test(part))) throw notFound();
  return join(root, ...parts);
}

async function openBelow(root: string, path: string, index: string): Promise<OpenedFile> {
  try {
    // A link that points out of the folder would reveal other files.
    const [realRoot, real] = await Promise.all([realpath(root), realpath(path)]);
    if (real !== realRoot && !real.startsWith(realRoot + sep)) throw notFound();
    const handle = await open(real, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await handle.stat();
    if (stats.isFile()) return { handle, stats, path: real };
    await handle.close();
    if (stats.isDirectory() && index !== "") return await openBelow(root, join(real, index), "");
    throw notFound();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (["ENOENT", "ENOTDIR", "EACCES", "ENAMETOOLONG", "ELOOP", "ENXIO"].includes(code ?? "")) {
      throw notFound();
    }
    throw error;
  }
}

function describeFile(
  { handle, stats, path }: OpenedFile,
  headers: ServiceRequest["headers"],
  { cacheControl = "no-cache" }: FilesOptions,
): FileAnswer {
  const etag = `"${stats.size.toString(36)}-${Math.trunc(stats.mtimeMs).toString(36)}"`;
  const common = [
    ["ETag", etag],
    ["Cache-Control", cacheControl],
    ["Last-Modified", stats.mtime.toUTCString()],
    ["Accept-Ranges", "bytes"],
  ] as const;
  const known = headers.get("if-none-match");
  if (known !== undefined && matchesEtag(known, etag)) {
    return { handle, status: 304, headers: common, start: 0, length: 0 };
  }
  const type = TYPES[extname(path).toLowerCase()] ?? "application/octet-stream";
  const typed = [["Content-Type", type], ...common] as const;
  const ifRange = headers.get("if-range");
  const field = ifRange === undefined || ifRange === etag ? headers.get("range") : undefined;
  const range = field === undefined ? undefined : readRange(field, stats.size);
  if (range === undefined) {
    return { handle, status: 200, headers: typed, start: 0, length: stats.size };
  }
  const [start, end] = range;
  const contentRange = ["Content-Range", `bytes ${start}-${end}/${stats.size}`] as const;
  return { handle, status: 206, headers: [...typed, contentRange], start, length: end - start + 1 };
}

function matchesEtag(field: string, etag: string): boolean {
  return field.split(",").some((one) => ["*", etag, `W/${etag}`].includes(one.trim()));
}

/** First and last byte of a single range; undefined if the field is not one, which is ignored (RFC 9110 §14.2). */
function readRange(field: string, size: number): [start: number, end: number] | undefined {
  const found = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(field);
  if (found === null || (found[1] === "" && found[2] === "")) return undefined;
  const [, first = "", last = ""] = found;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (first !== "" && last !== "" && Number(last) < start) return undefined;
  if (start > end) {
    throw new HttpError(416, `The range starts after the end of the file (${size} bytes).`, {
      headers: { "Content-Range": `bytes */${size}` },
    });
  }
  return [start, end];
}

function notFound(): HttpError {
  return new HttpError(404, "No such file.");
}
