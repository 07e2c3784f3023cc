// Serves a script that pages of any origin may load; the console's build writes it.
import { join } from "node:path";
import { PlatformError } from "@platform/kernel/errors";
import { bytes, defineRoute, type ApiRoute } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import { Bundle, PAGE_FOLDER } from "./bundle.ts";
import { answerPageFile } from "./page-file.ts";
import { BUILD_COMMAND } from "./page-routes.ts";

/** Options of `createScriptRoute`. */
export interface ScriptRouteOptions {
  /** Folder in the build and in the address: `/<folder>/<file>`. */
  folder: string;
  file: string;
  summary: string;
  tag: string;
  clock: Clock;
  /** Folder of the build; default: that of the installation. */
  pageFolder?: string;
}

/** The route of one script. Without a build it answers 503 `not_built` with the command. */
export function createScriptRoute(options: ScriptRouteOptions): ApiRoute {
  const { folder, file: name, summary, tag, clock, pageFolder = PAGE_FOLDER } = options;
  const bundle = new Bundle(clock, join(pageFolder, folder), name);
  return defineRoute({
    method: "GET",
    path: `/${folder}/${name}`,
    summary,
    tag,
    access: "public",
    answer: bytes("text/javascript"),
    problems: { 503: `\`not_built\`: ${BUILD_COMMAND}` },
    handle: ({ headers }) => {
      const state = bundle.read();
      const file = state.kind === "ready" ? state.files.get(name) : undefined;
      if (file === undefined) {
        throw new PlatformError(
          "not_built",
          `${name} is not built: run ${BUILD_COMMAND} in the checkout.`,
        );
      }
      return answerPageFile(file, headers, {
        "Access-Control-Allow-Origin": "*",
        "Cross-Origin-Resource-Policy": "cross-origin",
      });
    },
  });
}
