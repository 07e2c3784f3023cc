// JSON bodies of requests and responses.
import type { ValidateFunction } from "ajv/dist/2020.js";
import { readJson } from "./json-text.ts";
import type { RequestFinding } from "./openapi-parameter.ts";

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
  const [error] = validate.errors ?? [];
  const message = error?.message ?? "is not valid";
  return { in: "body", path: error?.instancePath ?? "", message };
}

/** The entry of a media type: its own, that of its range, or that of all types; undefined if there is none. */
export function findContent<T>(content: ReadonlyMap<string, T>, type: string): T | undefined {
  const name = (type.split(";")[0] ?? "").trim().toLowerCase();
  for (const key of [name, `${name.split("/")[0]}/*`, "*/*"]) {
    const found = content.get(key);
    if (found !== undefined) return found;
  }
  return undefined;
}
