// Modules of the built form keep their place: `import.meta.url` is the URL of their source, beside which they find files.
// Threads and programs that they start are those of the build.
import { relative } from "node:path";
import { MagicString } from "magic-string";
import type { Plugin } from "rolldown";
import { findFileBeside, readMeta, readString, visit, type AstNode } from "./syntax.ts";

/** Options of {@link createPlaces}. */
export interface PlaceOptions {
  /** Absolute path of the folder of the build. */
  readonly folder: string;
  /** Names of built files by the absolute paths of threads. */
  readonly threads: ReadonlyMap<string, string>;
  /** Names of built files by the specifiers of programs. */
  readonly programs: ReadonlyMap<string, string>;
  /** True for modules that start sources on purpose: those of projects are TypeScript. */
  readonly startsSources: (id: string) => boolean;
}

const SCRIPT = /\.[cm]?[jt]s$/;
/** They are about the file that runs: the built one. */
const KEPT = new Set(["resolve", "main", "filename"]);

/** Rewrites the uses of `import.meta`. Throws for those that the built form does not support. */
export function createPlaces(options: PlaceOptions): Plugin {
  return {
    name: "platform:places",
    transform(code, id) {
      if (!SCRIPT.test(id) || !code.includes("import.meta")) return undefined;
      const program = this.parse(code, { lang: /\.[cm]?ts$/.test(id) ? "ts" : "js" });
      const text = new MagicString(code);
      const place = JSON.stringify(relative(options.folder, id));
      let doneTo = 0;
      visit(program, (node) => {
        if (node.start < doneTo) return;
        const built = findBuilt(node, id, options);
        const property = readMeta(node);
        if (built !== undefined) text.update(node.start, node.end, built);
        else if (property === "url") {
          text.update(node.start, node.end, `new URL(${place}, import.meta.url).href`);
        } else if (property === undefined || KEPT.has(property)) return;
        else throw new Error(`${id}: import.meta.${property} has no built form`);
        doneTo = node.end;
      });
      if (!text.hasChanged()) return undefined;
      return { code: text.toString(), map: text.generateMap({ hires: "boundary" }).toString() };
    },
  };
}

/** The URL of a thread that is started, or of a program that is resolved; all built files are in one folder. */
function findBuilt(node: AstNode, id: string, options: PlaceOptions): string | undefined {
  const source = findFileBeside(node, id);
  const thread = source === undefined ? undefined : options.threads.get(source);
  if (thread !== undefined) return `new URL("./${thread}", import.meta.url)`;
  if (source?.endsWith(".ts") === true && !options.startsSources(id)) {
    throw new Error(
      `${id}: ${source} would run without its built form; name threads …-thread.ts, children …-child.ts`,
    );
  }
  if (node.type !== "CallExpression" || readMeta(node["callee"] as AstNode) !== "resolve") {
    return undefined;
  }
  const [specifier] = node["arguments"] as AstNode[];
  const name = specifier === undefined ? undefined : readString(specifier);
  const program = name === undefined ? undefined : options.programs.get(name);
  return program === undefined ? undefined : `new URL("./${program}", import.meta.url).href`;
}
