// YAML configuration files: parsed to the same document form as JSON, with positions.
import { isMap, isScalar, isSeq, LineCounter, parseDocument, type Node } from "yaml";
import { JsonSyntaxError, type JsonDocument, type JsonPath, type Position } from "./json.ts";

const TEXT_MAX = 1024 * 1024;

/**
 * Parses a YAML 1.2 document (core schema). Rejects duplicate keys, aliases, the key `__proto__`, keys that are not
 * strings, several documents, and texts of more than 1 Mi characters. Throws JsonSyntaxError.
 */
export function parseYaml(text: string): JsonDocument {
  const start = { line: 1, column: 1 };
  if (text.length > TEXT_MAX) {
    throw new JsonSyntaxError(`the document has more than ${TEXT_MAX} characters`, start);
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const toPosition = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) {
    throw new JsonSyntaxError(problem.message, toPosition(problem.pos[0]));
  }
  const root = document.contents as Node | null;
  const value = root === null ? {} : toValue(root, toPosition);
  return {
    value,
    locateValue: (path) => {
      const offset = find(root, path)?.range?.[0];
      return offset === undefined ? undefined : toPosition(offset);
    },
    locateKey: (path) => {
      const offset = findKey(root, path)?.range?.[0];
      return offset === undefined ? undefined : toPosition(offset);
    },
  };
}

function toValue(node: Node | null, toPosition: (offset: number) => Position): unknown {
  if (node === null) return null;
  const fail = (message: string, at: Node): never => {
    throw new JsonSyntaxError(message, toPosition(at.range?.[0] ?? 0));
  };
  if (isScalar(node)) return node.value;
  if (isSeq(node)) return node.items.map((item) => toValue(item as Node | null, toPosition));
  if (!isMap(node)) return fail("aliases are not allowed", node);
  const entries = node.items.map(({ key, value }) => {
    const name = isScalar(key) ? key.value : undefined;
    if (typeof name !== "string") return fail("keys must be strings", key as Node);
    if (name === "__proto__") return fail('the key "__proto__" is not allowed', key as Node);
    return [name, toValue(value as Node | null, toPosition)] as const;
  });
  return Object.fromEntries(entries);
}

function find(root: Node | null, path: JsonPath): Node | undefined {
  let node = root;
  for (const step of path) {
    if (node === null || !(isMap(node) || isSeq(node))) return undefined;
    node = (node.get(step, true) as Node | undefined) ?? null;
  }
  return node ?? undefined;
}

function findKey(root: Node | null, path: JsonPath): Node | undefined {
  const parent = find(root, path.slice(0, -1));
  if (!isMap(parent)) return undefined;
  const pair = parent.items.find(({ key }) => isScalar(key) && key.value === path.at(-1));
  return pair === undefined ? undefined : (pair.key as Node);
}
