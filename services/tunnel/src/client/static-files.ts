// Serves a folder to the client's streams, on a port of this machine: GET and HEAD, ranges, index.html, no listings.
import { createReadStream } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join, sep } from "node:path";
import { pipeline } from "node:stream/promises";

const TYPES: Readonly<Record<string, string>> = {
  ".avif": "image/avif",
  ".css": "text/css; charset=utf-8",
  ".csv": "text/csv; charset=utf-8",
  ".gif": "image/gif",
  ".htm": "text/html; charset=utf-8",
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
  ".webp": "image/webp",
  ".woff": "font/woff",
  ".woff2": "font/woff2",
  ".xml": "application/xml",
};

/** A running file server. */
export interface FileServer {
  readonly port: number;
  close(): void;
}

/** Serves the files below `folder` on a free port of 127.0.0.1. Hidden files and links out of the folder are not served. */
export async function serveFolder(folder: string): Promise<FileServer> {
  const root = await realpath(folder);
  const server: Server = createServer((request, response) => {
    answer(root, request, response).catch(() => {
      if (response.headersSent) response.destroy();
      else send(response, 500, "Internal error");
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port: 0 }, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answer(
  root: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    response.setHeader("Allow", "GET, HEAD");
    send(response, 405, "Method not allowed");
    return;
  }
  const found = await findFile(root, request.url ?? "/");
  if (found === undefined) {
    send(response, 404, "Not found");
    return;
  }
  if (found.kind === "redirect") {
    response.writeHead(301, { Location: found.location, "Content-Length": 0 });
    response.end();
    return;
  }
  await sendFile(found.path, request, response);
}

type Found = { kind: "file"; path: string } | { kind: "redirect"; location: string };

async function findFile(root: string, target: string): Promise<Found | undefined> {
  const path = decodePath(target);
  if (path === undefined) return undefined;
  const real = await realpath(join(root, path)).catch(() => undefined);
  if (real === undefined || (real !== root && !real.startsWith(root + sep))) return undefined;
  const { isDirectory } = await describe(real);
  if (!isDirectory) return path.endsWith("/") ? undefined : { kind: "file", path: real };
  // Relative links of a page resolve below its folder only with the slash.
  if (!path.endsWith("/")) {
    const location = `${target.split("?")[0]!.replace(/^\/+/, "/")}/`;
    return { kind: "redirect", location };
  }
  const index = join(real, "index.html");
  const isFile = await describe(index).then(
    (entry) => !entry.isDirectory,
    () => false,
  );
  return isFile ? { kind: "file", path: index } : undefined;
}

async function describe(path: string): Promise<{ isDirectory: boolean }> {
  return { isDirectory: (await stat(path)).isDirectory() };
}

/** Path of a request; undefined if it is malformed, climbs, or names a hidden file. */
function decodePath(target: string): string | undefined {
  let path: string;
  try {
    path = decodeURIComponent(target.split("?")[0] ?? "/");
  } catch {
    return undefined;
  }
  const parts = path.split("/");
  const isHidden = parts.some((part) => part.startsWith(".") && part !== ".well-known");
  return path.includes("\0") || path.includes("\\") || isHidden ? undefined : path;
}

async function sendFile(
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const file = await open(path, "r");
  try {
    const { size, mtimeMs } = await file.stat();
    const etag = `"${size.toString(16)}-${Math.floor(mtimeMs).toString(16)}"`;
    response.setHeader("ETag", etag);
    response.setHeader("Cache-Control", "no-cache");
    response.setHeader("Accept-Ranges", "bytes");
    if (request.headers["if-none-match"] === etag) {
      response.writeHead(304).end();
      return;
    }
    response.setHeader(
      "Content-Type",
      TYPES[extname(path).toLowerCase()] ?? "application/octet-stream",
    );
    const range = readRange(request.headers.range, size);
    if (range === "unsatisfiable") {
      response.setHeader("Content-Range", `bytes */${size}`);
      send(response, 416, "Range not satisfiable");
      return;
    }
    const { start, end } = range ?? { start: 0, end: size - 1 };
    if (range !== undefined) response.setHeader("Content-Range", `bytes ${start}-${end}/${size}`);
    response.setHeader("Content-Length", end - start + 1);
    response.writeHead(range === undefined ? 200 : 206);
    if (request.method === "HEAD" || end < start) response.end();
    else await pipeline(createReadStream("", { fd: file, start, end, autoClose: false }), response);
  } finally {
    await file.close();
  }
}

/** The range of a Range field with one range (RFC 9110 section 14.2); others are ignored. */
function readRange(
  field: string | undefined,
  size: number,
): { start: number; end: number } | "unsatisfiable" | undefined {
  const found = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(field ?? "");
  if (found === null || (found[1] === "" && found[2] === "")) return undefined;
  const [, first = "", last = ""] = found;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  if (start >= size || end < start) return "unsatisfiable";
  return { start, end };
}

function send(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    "Content-Type": "text/plain; charset=utf-8",
    "Content-Length": Buffer.byteLength(text),
  });
  response.end(text);
}
