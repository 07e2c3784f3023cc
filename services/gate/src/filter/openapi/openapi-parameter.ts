// Parameters of an operation in all styles of OpenAPI: https://spec.openapis.org/oas/v3.1.1.html#style-values
import type { ValidateFunction } from "ajv/dist/2020.js";
import { readJson } from "./json-text.ts";
import { describeError, isJsonType, type RequestFinding } from "./openapi-body.ts";
import { isObject, type JsonObject, listOf } from "./openapi-schema.ts";
import type { TextConverter } from "./openapi-text.ts";

/** Values of a request's parameters as sent. */
export interface SentParameters {
  /** Decoded values of the path's parameters, in order. */
  path: readonly string[];
  query: URLSearchParams;
  readHeader: (name: string) => string | undefined;
  /** Values of all cookies of a name. */
  readCookies: (name: string) => readonly string[];
}

/** Options of {@link OperationParameter}. */
export interface OperationParameterOptions {
  /** The resolved Parameter Object. */
  given: JsonObject;
  /** Names of the parameters in the path, in order. */
  pathNames: readonly string[];
  texts: TextConverter;
  compile: (schema: unknown) => ValidateFunction;
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
/** Nesting of brackets in a query. */
const DEPTH_MAX = 8;
/** A text that is not of the style. */
const MISFIT = Symbol("misfit");
const BRACKETS = /^([^[\]]*)((?:\[[^[\]]*\])+)$/;

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
  readonly #schema: unknown;
  readonly #texts: TextConverter;
  readonly #allowsEmpty: boolean;
  readonly #validate: ValidateFunction | undefined;

  /** Throws an Error that names the fault if the parameter is not usable. */
  constructor({ given, pathNames, texts, compile }: OperationParameterOptions) {
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
    this.#isJson = media !== undefined && isJsonType(media[0]);
    const schema = media === undefined ? given["schema"] : resolveSchema(media[1]);
    // Content of other media types is text without a schema that could apply to it.
    const isChecked = schema !== undefined && (media === undefined || this.#isJson);
    const shape = isChecked ? findShape(schema, texts) : { kind: "single" as const, names: [] };
    this.#shape = this.#isJson ? "single" : shape.kind;
    this.#properties = new Set(shape.names);
    this.#schema = schema;
    this.#texts = texts;
    this.#allowsEmpty = given["allowEmptyValue"] === true && place === "query";
    this.#validate = isChecked
      ? compile({ type: "object", properties: { value: schema } })
      : undefined;
  }

  /** Checks the parameter of a request. `others`: names of all other parameters of the query. */
  check(sent: SentParameters, others: ReadonlySet<string>): RequestFinding | undefined {
    const value = this.#read(sent, others);
    if (value === undefined) {
      return this.#isRequired ? this.#describe("", "is required") : undefined;
    }
    if (value === MISFIT) return this.#describe("", `is not in the style ${this.#style}`);
    if (this.#validate === undefined || (value === "" && this.#allowsEmpty)) return undefined;
    if (!this.#isJson) return this.#validateText(value);
    const read = readJson(typeof value === "string" ? value : "");
    if ("fault" in read) return this.#describe("", read.fault);
    try {
      return this.#validateValue(read.value);
    } catch {
      // A recursive schema and a deep document exhaust the stack.
      return this.#describe("", "is too deep");
    }
  }

  /** The value in a form, as text or in the shape of the schema; undefined if it is absent. */
  readForm(
    form: URLSearchParams,
    others: ReadonlySet<string>,
  ): { value: unknown } | { path: string; fault: string } {
    const value = this.#readQuery(form, others);
    const { path } = this.#describe("", "");
    if (value === MISFIT) return { path, fault: `is not in the style ${this.#style}` };
    if (!this.#isJson || value === undefined) return { value };
    const read = readJson(typeof value === "string" ? value : "");
    return "fault" in read ? { path, fault: read.fault } : read;
  }

  /** True if a name in a query belongs to the value of this parameter, without being its own. */
  owns(key: string): boolean {
    if (this.#style === "deepObject") return BRACKETS.exec(key)?.[1] === this.name;
    return this.#shape === "object" && this.#isExploded && this.#properties.has(key);
  }

  #validateText(value: unknown): RequestFinding | undefined {
    const typed = this.#texts.convert(value, this.#schema, false);
    const finding = this.#validateValue(typed);
    if (finding === undefined) return undefined;
    // The schema may allow others as well: a text in place of another type, or a single value in place of a list.
    const [only] = Array.isArray(value) && value.length === 1 ? (value as unknown[]) : [value];
    const isOther = [value, only].some((each) =>
      [false, true].some(
        (prefersText) =>
          this.#validateValue(this.#texts.convert(each, this.#schema, prefersText)) === undefined,
      ),
    );
    return isOther ? undefined : finding;
  }

  #validateValue(value: unknown): RequestFinding | undefined {
    const validate = this.#validate!;
    if (validate({ value })) return undefined;
    const { path, message } = describeError(validate);
    return this.#describe(path.replace(/^\/value/, ""), message);
  }

  #describe(below: string, message: string): RequestFinding {
    const name = this.name.replaceAll("~", "~0").replaceAll("/", "~1");
    return { in: this.place, path: `/${name}${below}`, message };
  }

  #read(sent: SentParameters, others: ReadonlySet<string>): unknown {
    switch (this.place) {
      case "path":
        return this.#parsePath(sent.path[this.#pathIndex]);
      case "header":
        return this.#parse(sent.readHeader(this.name), ",");
      case "cookie":
        return this.#shape === "object" && this.#isExploded
          ? this.#collect((name) => joinSingle(sent.readCookies(name)))
          : this.#readCookie(sent.readCookies(this.name));
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
        return text.startsWith(".")
          ? this.#parse(text.slice(1), this.#isExploded ? "." : ",")
          : MISFIT;
      case "matrix":
        return this.#parseMatrix(text);
      default:
        return this.#parse(text, ",");
    }
  }

  #parseMatrix(text: string): unknown {
    const [, ...parts] = text.split(";");
    if (!text.startsWith(";")) return MISFIT;
    if (this.#shape === "object" && this.#isExploded) return this.#parse(text.slice(1), ";");
    const start = `${this.name}=`;
    // `;name` is the empty value.
    const values = parts.map((each) =>
      each.startsWith(start) ? each.slice(start.length) : each === this.name ? "" : undefined,
    );
    if (values.includes(undefined)) return MISFIT;
    if (this.#shape === "list" && this.#isExploded) return values;
    return values.length === 1 ? this.#parse(values[0], ",") : MISFIT;
  }

  // Of a cookie that is sent twice, upstreams use the first or the last.
  #readCookie(all: readonly string[]): unknown {
    if (all.length < 2) return this.#parse(all[0], ",", false);
    return this.#shape === "list" && this.#isExploded ? all : MISFIT;
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
      return this.#isExploded
        ? all
        : all.flatMap((one) => (one === "" ? [] : one.split(separator)));
    }
    if (this.#shape === "single" || all.length > 1) return joinSingle(all);
    return this.#parse(all[0], separator, false);
  }

  /** A list or an object of a text; other values as they are. */
  #parse(text: string | undefined, separator: string, isExploded = this.#isExploded): unknown {
    if (text === undefined || this.#shape === "single") return text;
    // The empty list has no text of its own.
    if (this.#shape === "list" && text === "") return [];
    const parts = text.split(separator).map((part) => part.trim());
    if (this.#shape === "list") return parts;
    const pairs: [name: string, value: string][] = [];
    if (isExploded) {
      for (const part of parts) {
        const [key = "", ...value] = part.split("=");
        pairs.push([key, value.join("=")]);
      }
    } else {
      // Names and values alternate; the text of another form is not an object.
      if (parts.length % 2 !== 0) return text;
      for (let at = 0; at < parts.length; at += 2) pairs.push([parts[at]!, parts[at + 1]!]);
    }
    const object = createObject();
    for (const [key, value] of pairs) {
      // Upstreams use the first or the last.
      if (Object.hasOwn(object, key)) return MISFIT;
      object[key] = value;
    }
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
function findShape(schema: unknown, texts: TextConverter): { kind: Shape; names: string[] } {
  const names: string[] = [];
  let isList = false;
  let isMap = false;
  for (const { type, properties, items, prefixItems } of texts.listParts(schema)) {
    const types = listOf(type);
    const own = isObject(properties) ? Object.keys(properties) : [];
    names.push(...own);
    const hasItems = items !== undefined || prefixItems !== undefined;
    isList ||= types.includes("array") || (type === undefined && hasItems);
    isMap ||= types.includes("object") || (type === undefined && own.length > 0);
  }
  return { kind: isList ? "list" : isMap ? "object" : "single", names };
}

function isPlace(value: unknown): value is Place {
  return value === "path" || value === "query" || value === "header" || value === "cookie";
}
