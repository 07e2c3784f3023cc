// Serves a folder to the client's streams, on a port of this machine: GET and HEAD, ranges, index.html, no listings.
import { realpath } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";
import { openStaticFile, readPieces, type StaticFileAnswer } from "@platform/kernel/content";

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
  const [target = "/", query] = (request.url ?? "/").split("?");
  const path = decodePath(target);
  const found =
    path === undefined
      ? undefined
      : await openStaticFile(root, path, {
          method: request.method,
          read: (name) => readField(request, name),
          index: "index.html",
          cacheControl: "no-cache",
        });
  if (found === undefined) send(response, 404, "Not found");
  else if (found === "folder") {
    const location = `${target.replace(/^\/+/, "/")}/${query === undefined ? "" : `?${query}`}`;
    response.writeHead(301, { Location: location, "Content-Length": 0 }).end();
  } else await sendFile(found, request.method, response);
}

/** Path of a request below the folder; undefined if it is malformed. */
function decodePath(target: string): string | undefined {
  try {
    return decodeURIComponent(target.replace(/^\/+/, ""));
  } catch {
    return undefined;
  }
}

function readField({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}

async function sendFile(
  { status, headers, content }: StaticFileAnswer,
  method: string,
  response: ServerResponse,
): Promise<void> {
  try {
    for (const [name, value] of headers) response.setHeader(name, value);
    if (content !== undefined) response.setHeader("Content-Length", content.length);
    else if (status !== 304) response.setHeader("Content-Length", 0);
    response.writeHead(status);
    if (content === undefined || method === "HEAD") response.end();
    else await pipeline(readPieces(content), response);
  } finally {
    await content?.handle.close();
  }
}

function send(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    "Content-Type": "text/plain; charset=utf-8",
    "Content-Length": Buffer.byteLength(text),
  });
  response.end(text);
}
