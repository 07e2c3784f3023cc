// An OpenAPI document (3.0 or 3.1): finds the operation of a request and checks its parameters and body.
import type { ValidateFunction } from "ajv/dist/2020.js";
import { type JsonObject, SchemaCompiler } from "./openapi-schema.ts";

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
const REFERENCES_MAX = 32;

/** A fault of a request. */
export interface RequestFinding {
  in: "path" | "query" | "header" | "cookie" | "body";
  /** JSON pointer into the parameter or the body; "" is the whole of it. */
  path: string;
  message: string;
}

/** Values of a request's parameters as sent. */
interface SentParameters {
  query: URLSearchParams;
  readHeader: (name: string) => string | undefined;
  readCookie: (name: string) => string | undefined;
}

/** Body of an operation. */
export interface BodyRule {
  isRequired: boolean;
  /** Schemas by media type or range, in lower case; null for types whose content is not checked. */
  content: ReadonlyMap<string, ValidateFunction | null>;
}

/** An operation with its values in the path. */
export interface FoundOperation {
  operation: Operation;
  values: readonly string[];
}

type Place = "path" | "query" | "header" | "cookie";

interface Parameter {
  name: string;
  in: Place;
  isRequired: boolean;
  isList: boolean;
  /** The values of a list are in one text, separated by this; "" if they are repeated. */
  separator: string;
  validate: ValidateFunction;
}

/** One operation, compiled at its first use. */
class Operation {
  readonly #compile: () => { parameters: readonly Parameter[]; body: BodyRule | undefined };
  readonly #names: readonly string[];
  #rules: { parameters: readonly Parameter[]; body: BodyRule | undefined } | undefined;

  constructor(names: readonly string[], compile: Operation["compile"]) {
    this.#names = names;
    this.#compile = compile;
  }

  /** The rules; throws if a schema is not usable. */
  compile(): { parameters: readonly Parameter[]; body: BodyRule | undefined } {
    return (this.#rules ??= this.#compile());
  }

  /** The body that the operation accepts; undefined if the document has none. */
  get body(): BodyRule | undefined {
    return this.compile().body;
  }

  /** Checks the parameters; one finding per parameter. */
  checkParameters(values: readonly string[], sent: SentParameters): RequestFinding[] {
    return this.compile().parameters.flatMap((parameter) => {
      const value = this.#read(parameter, values, sent);
      if (value === undefined) {
        return parameter.isRequired ? [describeMissing(parameter)] : [];
      }
      return checkValue(parameter, value);
    });
  }

  #read(parameter: Parameter, values: readonly string[], sent: SentParameters) {
    const { name, isList, separator } = parameter;
    switch (parameter.in) {
      case "path":
        return split(values[this.#names.indexOf(name)], isList, separator || ",");
      case "header":
        return split(sent.readHeader(name), isList, ",");
      case "cookie":
        return split(sent.readCookie(name), isList, separator || ",");
      case "query": {
        const all = sent.query.getAll(name);
        if (all.length === 0) return undefined;
        if (isList) return separator === "" ? all : all.flatMap((one) => one.split(separator));
        return all.length === 1 ? all[0] : all;
      }
      default:
        return parameter.in satisfies never;
    }
  }
}

interface PathTemplate {
  /** Literal segments, and null for parameters. */
  segments: readonly (string | null)[];
  operations: ReadonlyMap<string, Operation>;
}

/** A document. Schemas are compiled at the first request of their operation. */
export class OpenApiDocument {
  readonly #root: JsonObject;
  readonly #schemas: SchemaCompiler;
  readonly #basePath: string;
  readonly #templates: readonly PathTemplate[];

  /** Throws an Error that names the fault if the document is not usable. */
  constructor(document: JsonObject) {
    const { openapi, paths, servers } = document;
    if (typeof openapi !== "string" || !/^3\.[01]\./.test(openapi)) {
      throw new Error("expected an OpenAPI document of version 3.0 or 3.1");
    }
    if (!isObject(paths)) throw new Error("the document has no paths");
    this.#root = document;
    const components = isObject(document["components"]) ? document["components"]["schemas"] : {};
    this.#schemas = new SchemaCompiler(openapi, isObject(components) ? components : {});
    this.#basePath = readBasePath(servers);
    this.#templates = Object.entries(paths)
      .map(([path, item]) => this.#readPath(path, this.#resolve(item)))
      .sort((left, right) => countParameters(left) - countParameters(right));
  }

  /** Compiles everything. Throws an Error that names the first schema that is not usable. */
  check(): void {
    for (const { operations } of this.#templates) {
      for (const operation of operations.values()) operation.compile();
    }
  }

  /** The operation of a normalized path and a method; undefined if the document does not contain it. */
  find(method: string, path: string): FoundOperation | undefined {
    if (!path.startsWith(this.#basePath)) return undefined;
    const segments = splitPath(path.slice(this.#basePath.length));
    if (segments === undefined) return undefined;
    const wanted = method.toLowerCase();
    for (const { segments: template, operations } of this.#templates) {
      const operation =
        operations.get(wanted) ?? (wanted === "head" ? operations.get("get") : undefined);
      if (operation === undefined || !matches(template, segments)) continue;
      return { operation, values: segments.filter((_, index) => template[index] === null) };
    }
    return undefined;
  }

  #readPath(path: string, item: JsonObject): PathTemplate {
    const parts = path.split("/").slice(1);
    const names = parts.flatMap((part) => /^\{([^}]+)\}$/.exec(part)?.[1] ?? []);
    const operations = METHODS.flatMap((method): [string, Operation][] => {
      if (item[method] === undefined) return [];
      const operation = this.#resolve(item[method]);
      return [[method, new Operation(names, () => this.#compile(path, method, item, operation))]];
    });
    return {
      segments: parts.map((part) => (/^\{[^}]+\}$/.test(part) ? null : part)),
      operations: new Map(operations),
    };
  }

  #compile(path: string, method: string, item: JsonObject, operation: JsonObject) {
    try {
      return {
        parameters: this.#readParameters(item, operation),
        body: this.#readBody(operation["requestBody"]),
      };
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`${method.toUpperCase()} ${path}: ${reason}`, { cause });
    }
  }

  // Parameters of the operation replace those of the path with the same name and place.
  #readParameters(item: JsonObject, operation: JsonObject): Parameter[] {
    const found = new Map<string, Parameter>();
    for (const given of [...listOf(item["parameters"]), ...listOf(operation["parameters"])]) {
      const parameter = this.#readParameter(this.#resolve(given));
      if (parameter !== undefined) found.set(`${parameter.in} ${parameter.name}`, parameter);
    }
    return [...found.values()];
  }

  #readParameter(given: JsonObject): Parameter | undefined {
    const { name, in: place, schema, style, explode } = given;
    if (typeof name !== "string" || !isPlace(place))
      throw new Error("a parameter has no name or place");
    // Objects in parameters and parameters with a media type are not checked.
    if (!isObject(schema) || style === "deepObject") return undefined;
    const isIgnored = place === "header" && /^(?:accept|content-type|authorization)$/i.test(name);
    if (isIgnored) return undefined;
    const isExploded = explode ?? (style === undefined || style === "form");
    const type = this.#resolve(schema)["type"];
    if (listOf(type).includes("object")) return undefined;
    return {
      name,
      in: place,
      isRequired: given["required"] === true || place === "path",
      isList: listOf(type).includes("array"),
      separator: findSeparator(style, isExploded === true),
      validate: this.#schemas.compile({ type: "object", properties: { value: schema } }, true),
    };
  }

  #readBody(given: unknown): BodyRule | undefined {
    if (given === undefined) return undefined;
    const body = this.#resolve(given);
    const content = Object.entries(isObject(body["content"]) ? body["content"] : {});
    return {
      isRequired: body["required"] === true,
      content: new Map(
        content.map(([type, media]) => {
          const schema = isObject(media) ? media["schema"] : undefined;
          const isChecked = schema !== undefined && isJsonType(type);
          return [type.toLowerCase(), isChecked ? this.#schemas.compile(schema, false) : null];
        }),
      ),
    };
  }

  // Follows references inside the document.
  #resolve(given: unknown): JsonObject {
    let value = given;
    for (let count = 0; count < REFERENCES_MAX; count++) {
      if (!isObject(value)) throw new Error("expected an object");
      const reference = value["$ref"];
      if (typeof reference !== "string") return value;
      if (!reference.startsWith("#/"))
        throw new Error(`the reference ${reference} is not supported`);
      value = findPointer(this.#root, reference.slice(2));
    }
    throw new Error("a reference refers to itself");
  }
}

/** True for JSON media types. */
export function isJsonType(type: string): boolean {
  return /^application\/(?:[^;]*\+)?json(?:\s*;|$)/i.test(type);
}

function checkValue(parameter: Parameter, value: string | string[]): RequestFinding[] {
  const { validate, name } = parameter;
  if (validate({ value })) return [];
  const [error] = validate.errors ?? [];
  const path = (error?.instancePath ?? "").replace(/^\/value/, `/${name}`);
  return [{ in: parameter.in, path, message: error?.message ?? "is not valid" }];
}

function describeMissing({ in: place, name }: Parameter): RequestFinding {
  return { in: place, path: `/${name}`, message: "is required" };
}

function split(value: string | undefined, isList: boolean, separator: string) {
  if (value === undefined || !isList) return value;
  return value.split(separator).map((each) => each.trim());
}

function findSeparator(style: unknown, isExploded: boolean): string {
  if (isExploded) return "";
  if (style === "spaceDelimited") return " ";
  return style === "pipeDelimited" ? "|" : ",";
}

function matches(template: readonly (string | null)[], segments: readonly string[]): boolean {
  return (
    template.length === segments.length &&
    template.every((part, index) =>
      part === null ? segments[index] !== "" : part === segments[index],
    )
  );
}

function splitPath(path: string): string[] | undefined {
  try {
    return path.split("/").slice(1).map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

function countParameters({ segments }: PathTemplate): number {
  return segments.filter((segment) => segment === null).length;
}

function readBasePath(servers: unknown): string {
  const [first] = listOf(servers);
  const given = isObject(first) ? first["url"] : undefined;
  const url = typeof given === "string" ? given : "/";
  const path = URL.canParse(url, "http://gateway") ? new URL(url, "http://gateway").pathname : "/";
  return path.replace(/\/+$/, "");
}

function findPointer(root: JsonObject, pointer: string): unknown {
  let value: unknown = root;
  for (const part of pointer.split("/")) {
    const name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  }
  return value;
}

function isPlace(value: unknown): value is Place {
  return value === "path" || value === "query" || value === "header" || value === "cookie";
}

function listOf(value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
