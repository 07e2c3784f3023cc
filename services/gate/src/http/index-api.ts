// Pages for programs on this machine, if no route matches: the index at `/`, and the way to the console.
import { readFile } from "node:fs/promises";
import { PlatformError } from "@platform/kernel/errors";
import { bytes, defineRoute, type ApiRoute, NO_BODY } from "@platform/kernel/http";

const POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; font-src data:; base-uri 'none'; frame-ancestors 'none'";

/** Creates the route. `readPath` returns the file; undefined if none is configured. */
export function createIndexRoute(readPath: () => string | undefined): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/",
    tag: "Operation",
    summary: "The page of index_file",
    answer: bytes("text/html"),
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

/** Creates the redirects to the console. `readUrl` returns its address; undefined without one. */
export function createConsoleRedirects(readUrl: () => string | undefined): ApiRoute[] {
  return ["/ui", "/ui/", "/ui/{path*}"].map((path) =>
    defineRoute({
      method: "GET",
      path,
      tag: "Operation",
      summary: "Redirect to the web console",
      status: 308,
      problems: { 404: "There is no console" },
      answer: NO_BODY,
      handle: ({ request, path: requested }) => {
        const url = readUrl();
        if (url === undefined) throw new PlatformError("not_found", "There is no console.");
        const { search } = new URL(request.url);
        const target = requested === "/ui" ? "/ui/" : requested;
        return new Response(null, {
          status: 308,
          headers: { Location: `${url}${target}${search}` },
        });
      },
    }),
  );
}
