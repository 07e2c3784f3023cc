// JSON Patch (RFC 6902) over parsed JSON.

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

interface Operation {
  op: string;
  path: string;
  from?: string;
  value?: Json;
}

/** Applies a patch to a text of JSON; throws an `Error` that says which operation failed. */
export function patchJson(text: string, patch: string): string {
  const operations: unknown = JSON.parse(patch);
  if (!Array.isArray(operations)) throw new TypeError("the patch must be a list of operations");
  let document = JSON.parse(text) as Json;
  for (const [index, operation] of operations.entries()) {
    try {
      document = apply(document, operation as Operation);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`operation ${index + 1}: ${reason}`, { cause: error });
    }
  }
  return JSON.stringify(document);
}

function apply(document: Json, operation: Operation): Json {
  const { op, path, from, value } = operation;
  const parts = readPointer(path);
  switch (op) {
    case "add":
      return add(document, parts, need(value));
    case "remove":
      return remove(document, parts);
    case "replace":
      read(document, parts);
      return parts.length === 0 ? need(value) : add(remove(document, parts), parts, need(value));
    case "move": {
      const source = readPointer(from ?? "");
      const moved = read(document, source);
      return add(remove(document, source), parts, moved);
    }
    case "copy":
      return add(document, parts, structuredClone(read(document, readPointer(from ?? ""))));
    case "test":
      if (JSON.stringify(read(document, parts)) !== JSON.stringify(value)) {
        throw new Error(`${path} differs`);
      }
      return document;
    default:
      throw new Error(`unknown operation ${op}`);
  }
}

function need(value: Json | undefined): Json {
  if (value === undefined) throw new Error("value is missing");
  return value;
}

function readPointer(pointer: unknown): string[] {
  if (pointer === "") return [];
  if (typeof pointer !== "string" || !pointer.startsWith("/")) throw new Error("invalid path");
  return pointer
    .slice(1)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function read(document: Json, parts: readonly string[]): Json {
  let value: Json = document;
  for (const part of parts) {
    const next: Json | undefined = Array.isArray(value)
      ? value[Number(part)]
      : typeof value === "object" && value !== null && Object.hasOwn(value, part)
        ? value[part]
        : undefined;
    if (next === undefined) throw new Error(`/${parts.join("/")} does not exist`);
    value = next;
  }
  return value;
}

/** A copy of the document in which `change` edits the parent of the path. */
function edit(
  document: Json,
  parts: readonly string[],
  change: (parent: Json[] | { [key: string]: Json }, last: string) => void,
): Json {
  const copy = structuredClone(document);
  const parent = read(copy, parts.slice(0, -1));
  if (typeof parent !== "object" || parent === null) throw new Error("the parent is a value");
  change(parent, parts.at(-1)!);
  return copy;
}

function add(document: Json, parts: readonly string[], value: Json): Json {
  if (parts.length === 0) return value;
  return edit(document, parts, (parent, last) => {
    if (Array.isArray(parent)) {
      const index = last === "-" ? parent.length : Number(last);
      if (!Number.isInteger(index) || index < 0 || index > parent.length) {
        throw new Error(`there is no index ${last}`);
      }
      parent.splice(index, 0, value);
    } else {
      // "__proto__" must become a member, not the prototype.
      Object.defineProperty(parent, last, {
        value,
        writable: true,
        enumerable: true,
        configurable: true,
      });
    }
  });
}

function remove(document: Json, parts: readonly string[]): Json {
  read(document, parts);
  if (parts.length === 0) return null;
  return edit(document, parts, (parent, last) => {
    if (Array.isArray(parent)) parent.splice(Number(last), 1);
    else delete parent[last];
  });
}
