// JSON Patch (RFC 6902) for the payloads of dead letters.
import { PlatformError } from "@platform/kernel/errors";
import { z } from "zod";

/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const PATCH_MAX = 100;
const POINTER_CHARACTERS_MAX = 1_024;
const pointer = z.string().max(POINTER_CHARACTERS_MAX);

/** A patch in a request. */
export const jsonPatchSchema = z
  .array(
    z.strictObject({
      op: z.enum(["add", "remove", "replace", "move", "copy", "test"]),
      path: pointer,
      from: pointer.optional(),
      value: z.json().optional(),
    }),
  )
  .max(PATCH_MAX);

/** A validated patch. */
export type JsonPatch = z.output<typeof jsonPatchSchema>;

/** Applies a patch to a payload; throws `unprocessable` with the operation that failed. */
export function patchPayload(payload: Buffer, patch: JsonPatch): Buffer {
  let document = parse(payload);
  for (const [index, operation] of patch.entries()) {
    try {
      document = apply(document, operation);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new PlatformError("unprocessable", `Operation ${index + 1} of the patch: ${reason}.`, {
        cause,
      });
    }
  }
  return Buffer.from(JSON.stringify(document));
}

/** The value of a payload at a JSON Pointer (RFC 6901); undefined if there is none, or the payload is not JSON. */
export function readValue(payload: Buffer, pointer: string): Json | undefined {
  try {
    return read(parse(payload), readPointer(pointer));
  } catch {
    return undefined;
  }
}

function parse(payload: Buffer): Json {
  try {
    return JSON.parse(payload.toString("utf8")) as Json;
  } catch (cause) {
    throw new PlatformError("unprocessable", "The payload is not JSON, so it cannot be patched.", {
      cause,
    });
  }
}

function apply(document: Json, operation: JsonPatch[number]): Json {
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
      return op satisfies never;
  }
}

function need(value: Json | undefined): Json {
  if (value === undefined) throw new Error("value is missing");
  return value;
}

/** The parts of a JSON Pointer (RFC 6901). Throws for one that does not begin with `/`. */
export function readPointer(text: string): string[] {
  if (text === "") return [];
  if (!text.startsWith("/")) throw new Error("invalid path");
  return text
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
