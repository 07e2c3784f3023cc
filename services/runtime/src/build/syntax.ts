// Syntax trees of modules: the forms by which files beside a module are named.
import { fileURLToPath, pathToFileURL } from "node:url";

/** A node of ESTree. */
export interface AstNode {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** The path of `new URL("name", import.meta.url)`. */
export function findFileBeside(node: AstNode, id: string): string | undefined {
  if (node.type !== "NewExpression" || findName(node["callee"]) !== "URL") return undefined;
  const [name, base] = node["arguments"] as AstNode[];
  const path = name === undefined ? undefined : readString(name);
  if (path === undefined || base === undefined || readMeta(base) !== "url") return undefined;
  const url = new URL(path, pathToFileURL(id));
  return url.protocol === "file:" ? fileURLToPath(url) : undefined;
}

/** The name of a property of `import.meta`; undefined for other nodes. */
export function readMeta(node: AstNode): string | undefined {
  if (node.type !== "MemberExpression") return undefined;
  if ((node["object"] as AstNode).type !== "MetaProperty") return undefined;
  return String(findName(node["property"]));
}

/** The value of a string literal. */
export function readString(node: AstNode): string | undefined {
  const { type, value } = node;
  return type === "Literal" && typeof value === "string" ? value : undefined;
}

/** The name of an identifier, or of a property in quotes. */
export function findName(node: unknown): unknown {
  const { name, value } = (node ?? {}) as { name?: unknown; value?: unknown };
  return name ?? value;
}

/** Calls `onNode` with each node, parents first. */
export function visit(node: unknown, onNode: (node: AstNode) => void): void {
  if (Array.isArray(node)) {
    for (const one of node) visit(one, onNode);
    return;
  }
  if (typeof node !== "object" || node === null) return;
  if ("type" in node) onNode(node as AstNode);
  for (const value of Object.values(node)) visit(value, onNode);
}
