// The page at `/` for programs on this machine, if no route matches.
import { readFile } from "node:fs/promises";
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, type ApiRoute } from "@platform/kernel/http";

const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

/** Creates the route. `readPath` returns the file; undefined if none is configured. */
export function createIndexRoute(readPath: () => string | undefined): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/",
    tag: "Operation",
    summary: "The page of index_file",
    answerType: "text/html",
    problems: { 404: "index_file is not set, or does not exist" },
    handle: async () => {
      const path = readPath();
      if (path === undefined) throw new PlatformError("not_found", "There is no index page.");
      const html = await readFile(path).catch((cause: unknown) => {
        throw new PlatformError("not_found", "The index page cannot be read.", { cause });
      });
      const headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": POLICY,
      };
      return new Response(html, { headers });
    },
  });
}
