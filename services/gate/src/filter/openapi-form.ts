// Bodies of `application/x-www-form-urlencoded`: https://spec.openapis.org/oas/v3.1.1.html#encoding-object
import type { ValidateFunction } from "ajv/dist/2020.js";
import { describeError, type RequestFinding } from "./openapi-body.ts";
import { OperationParameter } from "./openapi-parameter.ts";
import { isObject, type JsonObject, listOf } from "./openapi-schema.ts";
import type { TextConverter } from "./openapi-text.ts";

/** Options of {@link FormBody}. */
export interface FormBodyOptions {
  /** The Media Type Object. */
  media: JsonObject;
  texts: TextConverter;
  compile: (schema: unknown) => ValidateFunction;
}

/** A form: its fields are the properties of an object. */
export class FormBody {
  readonly #fields: readonly OperationParameter[];
  readonly #schema: unknown;
  readonly #texts: TextConverter;
  readonly #validate: ValidateFunction;

  /** Throws an Error that names the fault if the schema or an encoding is not usable. */
  constructor({ media, texts, compile }: FormBodyOptions) {
    const { schema, encoding } = media;
    const properties = new Map<string, unknown>();
    for (const part of texts.listParts(schema)) {
      for (const [name, each] of Object.entries(
        isObject(part["properties"]) ? part["properties"] : {},
      ))
        if (!properties.has(name)) properties.set(name, each);
    }
    this.#fields = Array.from(properties, ([name, property]) => {
      const given = isObject(encoding) ? encoding[name] : undefined;
      return new OperationParameter({
        given: {
          name,
          in: "query",
          ...describeField(property, isObject(given) ? given : {}, texts),
        },
        pathNames: [],
        texts,
        compile,
      });
    });
    this.#schema = schema;
    this.#texts = texts;
    this.#validate = compile(schema);
  }

  /** Parses and checks a body; undefined if it conforms. */
  check(body: Buffer): RequestFinding | undefined {
    const form = new URLSearchParams(body.toString("utf8"));
    const names = new Set(this.#fields.map(({ name }) => name));
    const object = Object.create(null) as Record<string, unknown>;
    for (const field of this.#fields) {
      const read = field.readForm(form, names);
      if ("fault" in read) return { in: "body", path: read.path, message: read.fault };
      if (read.value !== undefined) object[field.name] = read.value;
    }
    for (const key of new Set(form.keys())) {
      if (names.has(key) || this.#fields.some((field) => field.owns(key))) continue;
      const all = form.getAll(key);
      object[key] = all.length > 1 ? all : all[0];
    }
    let fault: RequestFinding | undefined;
    for (const prefersText of [false, true]) {
      if (this.#validate(this.#texts.convert(object, this.#schema, prefersText))) return undefined;
      fault ??= { in: "body", ...describeError(this.#validate) };
    }
    return fault;
  }
}

// An object without a style is JSON text.
function describeField(schema: unknown, given: JsonObject, texts: TextConverter): JsonObject {
  const { style, explode, contentType } = given;
  if (style !== undefined || explode !== undefined) return { schema, style, explode };
  const isMap = texts
    .listParts(schema)
    .some(({ type, properties }) => listOf(type).includes("object") || isObject(properties));
  const type = typeof contentType === "string" ? contentType : isMap ? "application/json" : "";
  return type === "" ? { schema } : { content: { [type]: { schema } } };
}
