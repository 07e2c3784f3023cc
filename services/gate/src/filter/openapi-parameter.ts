// Parameters of an operation in all styles of OpenAPI: https://spec.openapis.org/oas/v3.1.1.html#style-values
import type { ValidateFunction } from "ajv/dist/2020.js";
import { readJson } from "./json-text.ts";
import type { JsonObject } from "./openapi-schema.ts";

/** A fault of a request. */
export interface RequestFinding {
  in: "path" | "query" | "header" | "cookie" | "body";
  /** JSON pointer into the parameter or the body; "" is the whole of it. */
  path: string;
  message: string;
}

/** Values of a request's parameters as sent. */
export interface SentParameters {
  /** Decoded values of the path's parameters, in order. */
  path: readonly string[];
  query: URLSearchParams;
  readHeader: (name: string) => string | undefined;
  readCookie: (name: string) => string | undefined;
}

/** Options of {@link OperationParameter}. */
export interface OperationParameterOptions {
  /** The resolved Parameter Object. */
  given: JsonObject;
  /** Names of the parameters in the path, in order. */
  pathNames: readonly string[];
  /** Follows references. */
  resolve: (given: unknown) => JsonObject;
  /** Compiles a schema; with `coerces`, texts are converted to its types. */
  compile: (schema: unknown, coerces: boolean) => ValidateFunction;
}

type Place = "path" | "query" | "header" | "cookie";
type Shape = "single" | "list" | "object";
type Style =
  | "simple"
  | "label"
  | "matrix"
  | "form"
  | "spaceDelimited"
  | "pipeDelimited"
  | "deepObject";

const STYLES: Readonly<Record<Place, readonly Style[]>> = {
  path: ["simple", "label", "matrix"],
  query: ["form", "spaceDelimited", "pipeDelimited", "deepObject"],
  header: ["simple"],
  cookie: ["form"],
};
/** Nesting of schemas, and of brackets in a query. */
const DEPTH_MAX = 8;
const BRACKETS = /^([^[\]]*)((?:\[[^[\]]*\])+)$/;

/** One parameter. */
export class OperationParameter {
  readonly name: string;
  readonly place: Place;
  readonly #isRequired: boolean;
  readonly #style: Style;
  readonly #isExploded: boolean;
  readonly #shape: Shape;
  /** The value is JSON text. */
  readonly #isJson: boolean;
  /** Names of the properties of an object; empty if the schema names none. */
  readonly #properties: ReadonlySet<string>;
  readonly #pathIndex: number;
  readonly #validate: ValidateFunction | undefined;

  /** Throws an Error that names the fault if the parameter is not usable. */
  constructor({ given, pathNames, resolve, compile }: OperationParameterOptions) {
    const { name, in: place, content } = given;
    if (typeof name !== "string" || !isPlace(place)) {
      throw new Error("a parameter has no name or place");
    }
    this.name = name;
    this.place = place;
    this.#isRequired = given["required"] === true || place === "path";
    this.#pathIndex = pathNames.indexOf(name);
    this.#style = readStyle(given["style"], place, name);
    const isExploded = given["explode"] ?? this.#style === "form";
    this.#isExploded = isExploded === true;
    const [media] = isObject(content) ? Object.entries(content) : [];
    this.#isJson = media !== undefined && /^application\/(?:[^;]*\+)?json\b/i.test(media[0]);
    const schema = media === undefined ? given["schema"] : resolveSchema(media[1]);
    // Content of other media types is text without a schema that could apply to it.
    const isChecked = schema !== undefined && (media === undefined || this.#isJson);
    const shape = isChecked ? findShape(schema, resolve) : { kind: "single" as const, names: [] };
    this.#shape = this.#isJson ? "single" : shape.kind;
    this.#properties = new Set(shape.names);
    this.#validate = isChecked
      ? compile({ type: "object", properties: { value: schema } }, !this.#isJson)
      : undefined;
  }

  /** Checks the parameter of a request. `others`: names of all other parameters of the query. */
  check(sent: SentParameters, others: ReadonlySet<string>): RequestFinding | undefined {
    const value = this.#read(sent, others);
    if (value === undefined) {
      return this.#isRequired ? this.#describe("", "is required") : undefined;
    }
    if (this.#validate === undefined) return undefined;
    if (!this.#isJson) return this.#validateValue(value);
    const read = readJson(typeof value === "string" ? value : "");
    if ("fault" in read) return this.#describe("", read.fault);
    try {
      return this.#validateValue(read.value);
    } catch {
      // A recursive schema and a deep document exhaust the stack.
      return this.#describe("", "is too deep");
    }
  }

  #validateValue(value: unknown): RequestFinding | undefined {
    const validate = this.#validate!;
    if (validate({ value })) return undefined;
    const [error] = validate.errors ?? [];
    const below = (error?.instancePath ?? "").replace(/^\/value/, "");
    return this.#describe(below, error?.message ?? "is not valid");
  }

  #describe(below: string, message: string): RequestFinding {
    return { in: this.place, path: `/${this.name}${below}`, message };
  }

  #read(sent: SentParameters, others: ReadonlySet<string>): unknown {
    switch (this.place) {
      case "path":
        return this.#parsePath(sent.path[this.#pathIndex]);
      case "header":
        return this.#parse(sent.readHeader(this.name), ",");
      case "cookie":
        return this.#shape === "object" && this.#isExploded
          ? this.#collect((name) => sent.readCookie(name))
          : this.#parse(sent.readCookie(this.name), ",", false);
      case "query":
        return this.#readQuery(sent.query, others);
      default:
        return this.place satisfies never;
    }
  }

  #parsePath(text: string | undefined): unknown {
    if (text === undefined) return undefined;
    switch (this.#style) {
      case "label":
        return this.#parse(text.replace(/^\./, ""), this.#isExploded ? "." : ",");
      case "matrix": {
        const rest = text.replace(/^;/, "");
        const start = `${this.name}=`;
        const strip = (each: string): string =>
          each.startsWith(start) ? each.slice(start.length) : each;
        if (!this.#isExploded || this.#shape === "single") return this.#parse(strip(rest), ",");
        return this.#shape === "list"
          ? rest.split(";").map((each) => strip(each))
          : this.#parse(rest, ";");
      }
      default:
        return this.#parse(text, ",");
    }
  }

  #readQuery(query: URLSearchParams, others: ReadonlySet<string>): unknown {
    const { name } = this;
    if (this.#style === "deepObject") return readDeepObject(query, name);
    if (this.#shape === "object" && this.#isExploded) {
      const names = this.#properties.size > 0 ? [...this.#properties] : [...new Set(query.keys())];
      const own = names.filter((each) => this.#properties.has(each) || !others.has(each));
      return this.#collect((each) => joinSingle(query.getAll(each)), own);
    }
    const all = query.getAll(name);
    if (all.length === 0) return undefined;
    const separator = findSeparator(this.#style);
    if (this.#shape === "list") {
      return this.#isExploded ? all : all.flatMap((one) => one.split(separator));
    }
    if (this.#shape === "single" || all.length > 1) return joinSingle(all);
    return this.#parse(all[0], separator, false);
  }

  /** A list or an object of a text; other values as they are. */
  #parse(text: string | undefined, separator: string, isExploded = this.#isExploded): unknown {
    if (text === undefined || this.#shape === "single") return text;
    const parts = text.split(separator).map((part) => part.trim());
    if (this.#shape === "list") return parts;
    const object = createObject();
    if (isExploded) {
      for (const part of parts) {
        const [key = "", ...value] = part.split("=");
        object[key] = value.join("=");
      }
      return object;
    }
    // Names and values alternate; the text of another form is not an object.
    if (parts.length % 2 !== 0) return text;
    for (let at = 0; at < parts.length; at += 2) object[parts[at]!] = parts[at + 1];
    return object;
  }

  /** An object whose properties are sent as parameters of their own. */
  #collect(read: (name: string) => unknown, names: Iterable<string> = this.#properties): unknown {
    const object = createObject();
    let isEmpty = true;
    for (const name of names) {
      const value = read(name);
      if (value === undefined) continue;
      object[name] = value;
      isEmpty = false;
    }
    return isEmpty ? undefined : object;
  }
}

/** The object of `name[a]=1&name[b][c]=2`; repeated names are lists. */
function readDeepObject(query: URLSearchParams, name: string): unknown {
  const object = createObject();
  let isEmpty = true;
  for (const [key, value] of query) {
    const [, start, brackets] = BRACKETS.exec(key) ?? [];
    if (start !== name || brackets === undefined) continue;
    isEmpty = false;
    const path = brackets.slice(1, -1).split("][");
    // The place of a value that is too deep is not an object of the schema.
    if (path.length > DEPTH_MAX) return value;
    insert(object, path, value);
  }
  return isEmpty ? undefined : object;
}

function insert(object: Record<string, unknown>, path: readonly string[], value: string): void {
  let inner = object;
  for (const part of path.slice(0, -1)) {
    const known = inner[part];
    const next = isObject(known) ? (known as Record<string, unknown>) : createObject();
    inner[part] = next;
    inner = next;
  }
  const last = path.at(-1)!;
  // `name[list][]=1` is a list in most clients.
  const known = inner[last];
  if (known === undefined) inner[last] = value;
  else if (Array.isArray(known)) known.push(value);
  else inner[last] = [known, value];
}

// The names come from clients: without a prototype, none of them has a meaning.
function createObject(): Record<string, unknown> {
  return Object.create(null) as Record<string, unknown>;
}

function joinSingle(all: readonly string[]): string | readonly string[] | undefined {
  return all.length > 1 ? [...all] : all[0];
}

function findSeparator(style: Style): string {
  if (style === "spaceDelimited") return " ";
  return style === "pipeDelimited" ? "|" : ",";
}

function readStyle(style: unknown, place: Place, name: string): Style {
  const allowed = STYLES[place];
  if (style === undefined) return allowed[0]!;
  const found = allowed.find((each) => each === style);
  if (found !== undefined) return found;
  throw new Error(`the parameter ${name} has a style that is not one of ${allowed.join(", ")}`);
}

function resolveSchema(media: unknown): unknown {
  return isObject(media) ? media["schema"] : undefined;
}

/** The shape of the values of a schema, and the names of their properties, also of combined schemas. */
function findShape(
  schema: unknown,
  resolve: OperationParameterOptions["resolve"],
  depth = 0,
): { kind: Shape; names: string[] } {
  if (!isObject(schema) || depth > DEPTH_MAX) return { kind: "single", names: [] };
  const { type, properties, items, allOf, anyOf, oneOf } = resolve(schema);
  const types = listOf(type);
  const names = isObject(properties) ? Object.keys(properties) : [];
  let isList = types.includes("array") || (type === undefined && items !== undefined);
  let isMap = types.includes("object") || (type === undefined && names.length > 0);
  for (const part of [...listOf(allOf), ...listOf(anyOf), ...listOf(oneOf)]) {
    const shape = findShape(part, resolve, depth + 1);
    names.push(...shape.names);
    isList ||= shape.kind === "list";
    isMap ||= shape.kind === "object";
  }
  return { kind: isList ? "list" : isMap ? "object" : "single", names };
}

function isPlace(value: unknown): value is Place {
  return value === "path" || value === "query" || value === "header" || value === "cookie";
}

/** A value as a list; undefined is the empty list. */
export function listOf(value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

/** True for objects that are not lists. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
