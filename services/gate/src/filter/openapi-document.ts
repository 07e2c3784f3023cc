// An OpenAPI document (3.0 or 3.1): finds the operation of a request and checks its parameters and body.
import {
  isObject,
  listOf,
  OperationParameter,
  type RequestFinding,
  type SentParameters,
} from "./openapi-parameter.ts";
import type { ContentRules, ResponseRules } from "./openapi-response.ts";
import { type JsonObject, SchemaCompiler } from "./openapi-schema.ts";

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
const REFERENCES_MAX = 32;

/** Body of an operation. */
export interface BodyRule {
  isRequired: boolean;
  content: ContentRules;
}

/** An operation with its values in the path. */
export interface FoundOperation {
  operation: Operation;
  values: readonly string[];
}

interface OperationRules {
  parameters: readonly OperationParameter[];
  /** Names of all parameters of the query. */
  queryNames: ReadonlySet<string>;
  body: BodyRule | undefined;
  responses: ResponseRules;
}

/** One operation, compiled at its first use. */
class Operation {
  /** Method and path of the document. */
  readonly title: string;
  readonly #compile: () => OperationRules;
  #rules: OperationRules | undefined;

  constructor(title: string, compile: () => OperationRules) {
    this.title = title;
    this.#compile = compile;
  }

  /** The rules; throws if a schema is not usable. */
  compile(): OperationRules {
    return (this.#rules ??= this.#compile());
  }

  /** The body that the operation accepts; undefined if the document has none. */
  get body(): BodyRule | undefined {
    return this.compile().body;
  }

  /** The responses of the document. */
  get responses(): ResponseRules {
    return this.compile().responses;
  }

  /** Checks the parameters; one finding per parameter. */
  checkParameters(sent: SentParameters): RequestFinding[] {
    const { parameters, queryNames } = this.compile();
    return parameters.flatMap((parameter) => parameter.check(sent, queryNames) ?? []);
  }
}

interface OperationSource {
  path: string;
  method: string;
  item: JsonObject;
  operation: JsonObject;
  /** Names of the parameters in the path, in order. */
  names: readonly string[];
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
    const wanted = method.toLowerCase();
    const segments = this.#split(path);
    if (segments === undefined) return undefined;
    for (const { segments: template, operations } of this.#templates) {
      const operation =
        operations.get(wanted) ?? (wanted === "head" ? operations.get("get") : undefined);
      if (operation === undefined || !matches(template, segments)) continue;
      return { operation, values: segments.filter((_, index) => template[index] === null) };
    }
    return undefined;
  }

  /** The methods of the operations at a path, for `Allow`. */
  listMethods(path: string): string[] {
    const segments = this.#split(path);
    if (segments === undefined) return [];
    const methods = new Set<string>();
    for (const { segments: template, operations } of this.#templates) {
      if (!matches(template, segments)) continue;
      for (const method of operations.keys()) methods.add(method.toUpperCase());
    }
    if (methods.has("GET")) methods.add("HEAD");
    return [...methods];
  }

  #split(path: string): string[] | undefined {
    if (!path.startsWith(this.#basePath)) return undefined;
    return splitPath(path.slice(this.#basePath.length));
  }

  #readPath(path: string, item: JsonObject): PathTemplate {
    const parts = path.split("/").slice(1);
    const names = parts.flatMap((part) => /^\{([^}]+)\}$/.exec(part)?.[1] ?? []);
    const operations = METHODS.flatMap((method): [string, Operation][] => {
      if (item[method] === undefined) return [];
      const operation = this.#resolve(item[method]);
      return [
        [
          method,
          new Operation(`${method.toUpperCase()} ${path}`, () =>
            this.#compile({ path, method, item, operation, names }),
          ),
        ],
      ];
    });
    return {
      segments: parts.map((part) => (/^\{[^}]+\}$/.test(part) ? null : part)),
      operations: new Map(operations),
    };
  }

  #compile({ path, method, item, operation, names }: OperationSource): OperationRules {
    try {
      const parameters = this.#readParameters(item, operation, names);
      const inQuery = parameters.filter(({ place }) => place === "query");
      return {
        parameters,
        queryNames: new Set(inQuery.map(({ name }) => name)),
        body: this.#readBody(operation["requestBody"]),
        responses: this.#readResponses(operation["responses"]),
      };
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`${method.toUpperCase()} ${path}: ${reason}`, { cause });
    }
  }

  // Parameters of the operation replace those of the path with the same name and place.
  #readParameters(
    item: JsonObject,
    operation: JsonObject,
    pathNames: readonly string[],
  ): OperationParameter[] {
    const found = new Map<string, OperationParameter>();
    for (const each of [...listOf(item["parameters"]), ...listOf(operation["parameters"])]) {
      const given = this.#resolve(each);
      const { name, in: place } = given;
      // These fields are described by other parts of an operation.
      const isIgnored =
        place === "header" && /^(?:accept|content-type|authorization)$/i.test(String(name));
      if (isIgnored) continue;
      const parameter = new OperationParameter({
        given,
        pathNames,
        resolve: (schema) => this.#resolve(schema),
        compile: (schema, coerces) => this.#schemas.compile(schema, coerces),
      });
      found.set(`${parameter.place} ${parameter.name}`, parameter);
    }
    return [...found.values()];
  }

  #readBody(given: unknown): BodyRule | undefined {
    if (given === undefined) return undefined;
    const body = this.#resolve(given);
    return { isRequired: body["required"] === true, content: this.#readContent(body["content"]) };
  }

  #readResponses(given: unknown): ResponseRules {
    const responses = Object.entries(isObject(given) ? given : {});
    return new Map(
      responses.map(([status, response]) => [
        status.toLowerCase(),
        this.#readContent(this.#resolve(response)["content"]),
      ]),
    );
  }

  #readContent(given: unknown): ContentRules {
    const content = Object.entries(isObject(given) ? given : {});
    return new Map(
      content.map(([type, media]) => {
        const schema = isObject(media) ? media["schema"] : undefined;
        const isChecked = schema !== undefined && isJsonType(type);
        return [type.toLowerCase(), isChecked ? this.#schemas.compile(schema, false) : null];
      }),
    );
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
