// Embeds files in a bundle: folders of migrations, folders that are served, and files that are read beside a module.
import { existsSync, readFileSync } from "node:fs";
import { dirname, isAbsolute, relative, resolve } from "node:path";
import { MagicString } from "magic-string";
import { readMigrationFolder } from "@platform/service/host";
import { findLineColumn } from "../language/source-problem.ts";
import type { Assets } from "./assets.ts";
import { findFileBeside, findName, readString, visit, type AstNode } from "./syntax.ts";

/** A module to change. */
interface Module {
  readonly code: string;
  /** Absolute path. */
  readonly id: string;
  /** ESTree. */
  readonly program: object;
  readonly assets: Assets;
  /** True if assets become files beside the script, in place of parts of an executable. */
  readonly isContainer: boolean;
  readonly onWarning: (text: string) => void;
}

/** Local name of the function that reads assets. */
const READ_ASSET = "$readAsset";

/**
 * Replaces, in calls of `database()`, folders of migrations by their texts; in calls of `files()`, folders by assets;
 * and calls of `readFileSync(new URL("name", import.meta.url))` by the content of the file. Undefined if there are none.
 */
export function embedFiles(module: Module): { code: string; map: string } | undefined {
  const { code, id, program } = module;
  const text = new MagicString(code);
  const databases = findImported(program, "database");
  const served = findImported(program, "files");
  visit(program, (node) => {
    if (node.type !== "CallExpression") return;
    const { callee } = node as unknown as { callee: AstNode };
    const name = callee.type === "Identifier" ? callee["name"] : findName(callee["property"]);
    const isImported = (names: ReadonlySet<string>): boolean =>
      callee.type === "Identifier" && names.has(String(name));
    if (isImported(databases)) embedMigrations(text, node, module);
    else if (isImported(served)) embedFolder(text, node, module);
    else if (name === "readFileSync") embedFile(text, node, module);
  });
  if (!text.hasChanged()) return undefined;
  if (text.toString().includes(READ_ASSET)) {
    text.prepend(`import { getRawAsset as ${READ_ASSET} } from "node:sea"; `);
  }
  const map = text.generateMap({ source: id, hires: "boundary" }).toString();
  return { code: text.toString(), map };
}

/** Local names of a function of the service package. */
export function findImported(program: object, imported: string): ReadonlySet<string> {
  const names = new Set<string>();
  visit(program, (node) => {
    if (node.type !== "ImportDeclaration") return;
    if ((node["source"] as { value: string }).value !== "@platform/service") return;
    for (const one of node["specifiers"] as { imported?: unknown; local: unknown }[]) {
      if (findName(one.imported) === imported) names.add(String(findName(one.local)));
    }
  });
  return names;
}

function embedMigrations(text: MagicString, call: AstNode, module: Module): void {
  const [name, options, from] = call["arguments"] as AstNode[];
  if (options?.type !== "ObjectExpression") return;
  for (const property of options["properties"] as AstNode[]) {
    if (findName(property["key"]) !== "migrations") continue;
    const value = property["value"] as AstNode;
    const folder = findFolder(value, from, module);
    if (folder !== undefined) {
      text.update(value.start, value.end, JSON.stringify(readMigrationFolder(folder)));
    } else if (value.type !== "ObjectExpression") {
      const { line } = findLineColumn(module.code, property.start);
      const place = `${relative(process.cwd(), module.id)}:${line}`;
      const database = (name === undefined ? undefined : readString(name)) ?? "a database";
      module.onWarning(
        `${place}: the migrations of ${database} are not embedded: write their folder as a string`,
      );
    }
  }
}

function findFolder(value: AstNode, from: AstNode | undefined, { id }: Module): string | undefined {
  const path = readString(value);
  // As at run time: relative to the file if its URL is passed, otherwise to the working directory.
  if (path !== undefined) return from === undefined ? resolve(path) : resolve(dirname(id), path);
  return findFileBeside(value, id);
}

// A missing folder, and one that is not written as a string, is that of the machine where the executable runs.
function embedFolder(text: MagicString, call: AstNode, module: Module): void {
  const [place] = call["arguments"] as AstNode[];
  if (place === undefined) return;
  const path = readString(place);
  const isRelative = path !== undefined && !isAbsolute(path);
  const folder = isRelative ? resolve(path) : findFileBeside(place, module.id);
  if (folder === undefined || !existsSync(folder)) return;
  const { prefix, files } = module.assets.addFolder(folder);
  if (module.isContainer) {
    text.update(place.start, place.end, `new URL(${JSON.stringify(prefix)}, import.meta.url)`);
    return;
  }
  const read = `(path) => new Uint8Array(${READ_ASSET}(${JSON.stringify(prefix)} + path))`;
  text.update(place.start, place.end, `{ files: ${JSON.stringify(files)}, read: ${read} }`);
}

function embedFile(text: MagicString, call: AstNode, { id }: Module): void {
  const [place, encoding] = call["arguments"] as AstNode[];
  const file = place === undefined ? undefined : findFileBeside(place, id);
  if (file === undefined || !existsSync(file)) return;
  const isText = encoding !== undefined && /^utf-?8$/.test(readString(encoding) ?? "");
  if (encoding !== undefined && !isText) return;
  const bytes = readFileSync(file);
  const content = isText
    ? JSON.stringify(bytes.toString("utf8"))
    : `Buffer.from("${bytes.toString("base64")}", "base64")`;
  text.update(call.start, call.end, content);
}
