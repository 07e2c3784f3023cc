// Files of a folder as results.
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { openStaticFile, type StaticFileAnswer } from "@platform/kernel/content";
import { HttpError } from "../error/http-error.ts";
import type { ServiceRequest } from "../request/request.ts";

/** Options of {@link files}. */
export interface FilesOptions {
  /** File of a folder; default `index.html`. */
  index?: string;
  /** Value of Cache-Control; default `no-cache`: clients revalidate by ETag. */
  cacheControl?: string;
}

/** Wraps a file, so that it is not mistaken for an object; the server closes it. */
export class FileResult {
  readonly answer: StaticFileAnswer;

  constructor(answer: StaticFileAnswer) {
    this.answer = answer;
  }
}

/**
 * Creates a handler that serves the files of a folder: the path below it is the parameter `*`. Hidden files and links
 * out of the folder are not found. Conditional requests and single ranges are supported.
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
  const { index = "index.html", cacheControl = "no-cache" } = options;
  return async ({ method, params, headers }) => {
    const path = (params["*"] ?? "").split("/").filter(Boolean).join("/");
    const read = (name: string): string | undefined => headers.get(name);
    const settings = { method, read, index, cacheControl };
    let answer = await openStaticFile(root, path, settings);
    if (answer === "folder") answer = await openStaticFile(root, `${path}/`, settings);
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
