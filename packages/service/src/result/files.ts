// Files of a folder as results.
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { openStaticFile, readPieces, type StaticFileOptions } from "@platform/kernel/content";
import { HttpError } from "../error/http-error.ts";
import type { ServiceRequest } from "../request/request.ts";
import { FileResult, type FileAnswer } from "./file-result.ts";
import { findEmbeddedFile, type EmbeddedFolder } from "./embedded-files.ts";

/** Options of {@link files}. */
export interface FilesOptions {
  /** File of a folder; default `index.html`. */
  index?: string;
  /** Value of Cache-Control; default `no-cache`: clients revalidate by ETag. */
  cacheControl?: string;
}

type FindFile = (
  path: string,
  options: StaticFileOptions,
) => Promise<FileAnswer | "folder" | undefined>;

/**
 * Creates a handler that serves the files of a folder: the path below it is the parameter `*`. Hidden files and links
 * out of the folder are not found. Conditional requests and single ranges are supported. The files of a folder that is written
 * as a string are part of executables.
 *
 * ```ts
 * route("GET", "/assets/*", files("./public"));
 * ```
 */
export function files(
  folder: string | URL | EmbeddedFolder,
  options: FilesOptions = {},
): (request: ServiceRequest) => Promise<FileResult> {
  const find = createFinder(folder);
  const { index = "index.html", cacheControl = "no-cache" } = options;
  return async ({ method, params, headers }) => {
    const path = (params["*"] ?? "").split("/").filter(Boolean).join("/");
    const read = (name: string): string | undefined => headers.get(name);
    const settings = { method, read, index, cacheControl };
    let answer = await find(path, settings);
    if (answer === "folder") answer = await find(`${path}/`, settings);
    if (answer === undefined || answer === "folder") throw new HttpError(404, "No such file.");
    if (answer.status === 412 || answer.status === 416) {
      const detail =
        answer.status === 412
          ? "The file has changed."
          : "The range starts after the end of the file.";
      throw new HttpError(answer.status, detail, { headers: Object.fromEntries(answer.headers) });
    }
    return new FileResult(answer);
  };
}

function createFinder(folder: string | URL | EmbeddedFolder): FindFile {
  if (typeof folder !== "string" && !(folder instanceof URL)) {
    return (path, options) => Promise.resolve(findEmbeddedFile(folder, path, options));
  }
  const root = resolve(folder instanceof URL ? fileURLToPath(folder) : folder);
  return (path, options) => findFile(root, path, options);
}

async function findFile(...place: Parameters<typeof openStaticFile>): ReturnType<FindFile> {
  const answer = await openStaticFile(...place);
  if (typeof answer !== "object") return answer;
  const { content, ...head } = answer;
  if (content === undefined) return head;
  const { handle, length } = content;
  const read = () => readPieces(content);
  return { ...head, content: { length, read, close: () => handle.close() } };
}
