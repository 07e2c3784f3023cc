// An OpenAPI document (3.0 or 3.1): finds the operation of a request and checks its parameters and body.
import type { ValidateFunction } from "ajv/dist/2020.js";
import { isJsonType, readTypeName, type RequestFinding } from "./openapi-body.ts";
import { FormBody } from "./openapi-form.ts";
import { OperationParameter, type SentParameters } from "./openapi-parameter.ts";
import { countParameters, matchSegments, parseTemplate, type Segment } from "./openapi-path.ts";
import type { ResponseRules } from "./openapi-response.ts";
import { isObject, type JsonObject, listOf, SchemaCompiler } from "./openapi-schema.ts";
import { TextConverter } from "./openapi-text.ts";

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];
const REFERENCES_MAX = 32;
const FORM_TYPES: ReadonlySet<string> = new Set([
  "application/x-www-form-urlencoded",
  "multipart/form-data",
]);

/** The check of a body of one media type or range; null if its content is not checked. */
export type BodyCheck = { json: ValidateFunction } | { form: FormBody } | null;

/** Body of an operation. */
export interface BodyRule {
  isRequired: boolean;
  /** By media type or range, in lower case. */
  content: ReadonlyMap<string, BodyCheck>;
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
  segments: readonly Segment[];
  operations: ReadonlyMap<string, Operation>;
}

/** A document. Schemas are compiled at the first request of their operation. */
export class OpenApiDocument {
  readonly #root: JsonObject;
  readonly #schemas: SchemaCompiler;
  readonly #texts = new TextConverter((schema) => this.#resolve(schema));
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
    this.#schemas = new SchemaCompiler(openapi, isObject(components) ? components : {}, document);
    this.#basePath = readBasePath(servers);
    this.#templates = Object.entries(paths)
      .map(([path, item]) => this.#readPath(path, this.#resolve(item)))
      .sort((left, right) => countParameters(left.segments) - countParameters(right.segments));
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
      const values = operation === undefined ? undefined : matchSegments(template, segments);
      if (operation !== undefined && values !== undefined) return { operation, values };
    }
    return undefined;
  }

  /** The methods of the operations at a path, for `Allow`. */
  listMethods(path: string): string[] {
    const segments = this.#split(path);
    if (segments === undefined) return [];
    const methods = new Set<string>();
    for (const { segments: template, operations } of this.#templates) {
      if (matchSegments(template, segments) === undefined) continue;
      for (const method of operations.keys()) methods.add(method.toUpperCase());
    }
    if (methods.has("GET")) methods.add("HEAD");
    return [...methods];
  }

  #split(path: string): string[] | undefined {
    if (!path.startsWith(this.#basePath)) return undefined;
    const rest = path.slice(this.#basePath.length);
    return rest.startsWith("/") ? splitPath(rest) : undefined;
  }

  #readPath(path: string, item: JsonObject): PathTemplate {
    const { segments, names } = parseTemplate(path);
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
    return { segments, operations: new Map(operations) };
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
        texts: this.#texts,
        compile: (schema) => this.#schemas.compile(schema, "request"),
      });
      found.set(`${parameter.place} ${parameter.name}`, parameter);
    }
    return [...found.values()];
  }

  #readBody(given: unknown): BodyRule | undefined {
    if (given === undefined) return undefined;
    const body = this.#resolve(given);
    const content = Object.entries(isObject(body["content"]) ? body["content"] : {});
    return {
      isRequired: body["required"] === true,
      content: new Map(
        content.map(([type, media]) => [readTypeName(type), this.#readMedia(type, media)]),
      ),
    };
  }

  #readMedia(type: string, media: unknown): BodyCheck {
    if (!isObject(media) || media["schema"] === undefined) return null;
    const compile = (schema: unknown): ValidateFunction => this.#schemas.compile(schema, "request");
    if (FORM_TYPES.has(readTypeName(type))) {
      return { form: new FormBody({ media, texts: this.#texts, compile }) };
    }
    return isCheckedType(type) ? { json: compile(media["schema"]) } : null;
  }

  #readResponses(given: unknown): ResponseRules {
    const responses = Object.entries(isObject(given) ? given : {});
    return new Map(
      responses.map(([status, response]) => {
        const { content } = this.#resolve(response);
        const entries = Object.entries(isObject(content) ? content : {});
        return [
          status.toLowerCase(),
          new Map(
            entries.map(([type, media]) => {
              const schema = isObject(media) ? media["schema"] : undefined;
              const isChecked = schema !== undefined && isCheckedType(type);
              const check = isChecked ? this.#schemas.compile(schema, "response") : null;
              return [readTypeName(type), check];
            }),
          ),
        ];
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

/** The schema of a range applies to the JSON in it. */
function isCheckedType(type: string): boolean {
  return isJsonType(type) || readTypeName(type).endsWith("/*");
}

function splitPath(path: string): string[] | undefined {
  try {
    return path.split("/").slice(1).map(decodeURIComponent);
  } catch {
    return undefined;
  }
}

// Variables of a server have their default values.
function readBasePath(servers: unknown): string {
  const [first] = listOf(servers);
  const { url: given = "/", variables = {} } = isObject(first) ? first : {};
  const url = String(given).replaceAll(/\{([^{}]*)\}/g, (whole, name: string) => {
    const variable = isObject(variables) && Object.hasOwn(variables, name) ? variables[name] : {};
    const value = isObject(variable) ? variable["default"] : undefined;
    return typeof value === "string" ? value : whole;
  });
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
