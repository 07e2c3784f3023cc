// JSON bodies of requests and responses, and what a schema says of them.
import type { ValidateFunction } from "ajv/dist/2020.js";
import { readJson } from "./json-text.ts";

const NAME_CHARACTERS_MAX = 64;
const MEDIA_TYPE = /^[!#$&^_.+\-0-9a-z]+\/[!#$&^_.+\-0-9a-z]+$/;

/** A fault of a request. */
export interface RequestFinding {
  in: "path" | "query" | "header" | "cookie" | "body";
  /** JSON pointer into the parameter or the body; "" is the whole of it. */
  path: string;
  message: string;
}

/** Parses and checks a body; undefined if it conforms. */
export function checkJson(body: Buffer, validate: ValidateFunction): RequestFinding | undefined {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return { in: "body", path: "", message: "is not JSON" };
  }
  const read = readJson(text);
  if ("fault" in read) return { in: "body", path: "", message: read.fault };
  try {
    if (validate(read.value)) return undefined;
  } catch {
    // A recursive schema and a deep document exhaust the stack.
    return { in: "body", path: "", message: "is too deep" };
  }
  return { in: "body", ...describeError(validate) };
}

/** Place and message of the first error of the last validation. */
export function describeError({ errors }: ValidateFunction): { path: string; message: string } {
  const [error] = errors ?? [];
  const params = (error?.params ?? {}) as Record<string, unknown>;
  const name =
    params["additionalProperty"] ?? params["unevaluatedProperty"] ?? params["propertyName"];
  const message = error?.message ?? "is not valid";
  const named =
    typeof name === "string" ? `: ${JSON.stringify(name.slice(0, NAME_CHARACTERS_MAX))}` : "";
  return { path: error?.instancePath ?? "", message: `${message}${named}` };
}

/** The entry of a media type: its own, that of its range, or that of all types; undefined if there is none. */
export function findContent<T>(content: ReadonlyMap<string, T>, type: string): T | undefined {
  const name = readTypeName(type);
  // Without a type, and of two types that are sent at once, an upstream may choose.
  if (name !== "" && !MEDIA_TYPE.test(name)) return undefined;
  for (const key of [name, `${name.split("/")[0]}/*`, "*/*"]) {
    const found = content.get(key);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A media type in lower case, without its parameters. */
export function readTypeName(type: string): string {
  return (type.split(";")[0] ?? "").trim().toLowerCase();
}

/** True for JSON media types. */
export function isJsonType(type: string): boolean {
  return /[/+]json$/.test(readTypeName(type));
}

/** True if a media type names another charset than UTF-8 or ASCII, in which an upstream would read other values. */
export function hasForeignCharset(type: string): boolean {
  const charsets = type.matchAll(/;\s*charset\s*=\s*("?)([^\s;"]*)\1/gi);
  return Array.from(charsets).some(
    ([, , charset = ""]) => !/^(?:utf-?8|us-ascii|)$/i.test(charset),
  );
}
