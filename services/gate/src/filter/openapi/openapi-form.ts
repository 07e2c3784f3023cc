// Bodies of forms, URL-encoded and multipart: https://spec.openapis.org/oas/v3.1.1.html#encoding-object
import type { ValidateFunction } from "ajv/dist/2020.js";
import { type FormPart, readBoundary, readParts } from "./multipart-parts.ts";
import {
  describeError,
  hasForeignCharset,
  isJsonType,
  readTypeName,
  type RequestFinding,
} from "./openapi-body.ts";
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
  /** Media types that the parts of a name may have. */
  readonly #types: ReadonlyMap<string, readonly string[]>;
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
      const given =
        isObject(encoding) && Object.hasOwn(encoding, name) ? encoding[name] : undefined;
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
    this.#types = readTypes(encoding);
    this.#schema = schema;
    this.#texts = texts;
    this.#validate = compile(schema);
  }

  /** Parses and checks a URL-encoded body; undefined if it conforms. */
  checkEncoded(body: Buffer): RequestFinding | undefined {
    return this.#check(new URLSearchParams(body.toString("utf8")));
  }

  /** Parses and checks a multipart body of this Content-Type; undefined if it conforms. */
  checkMultipart(body: Buffer, type: string): RequestFinding | undefined {
    const boundary = readBoundary(type);
    const parts = boundary === undefined ? undefined : readParts(body, boundary);
    if (parts === undefined) return { in: "body", path: "", message: "is not multipart/form-data" };
    const form = new URLSearchParams();
    for (const part of parts) {
      const message = this.#judgePart(part);
      if (message !== undefined) {
        const name = part.name.replaceAll("~", "~0").replaceAll("/", "~1");
        return { in: "body", path: `/${name}`, message };
      }
      form.append(part.name, readText(part));
    }
    return this.#check(form);
  }

  #judgePart({ name, type = "text/plain" }: FormPart): string | undefined {
    if (hasForeignCharset(type)) return "must be UTF-8";
    const types = this.#types.get(name);
    const own = readTypeName(type);
    const fits = types?.some((each) =>
      each.endsWith("/*") ? each === "*/*" || own.startsWith(each.slice(0, -1)) : each === own,
    );
    return fits === false ? `must be of the type ${types!.join(", ")}` : undefined;
  }

  #check(form: URLSearchParams): RequestFinding | undefined {
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
  const isJson = typeof contentType === "string" ? isJsonType(contentType) : isMap;
  return isJson ? { content: { "application/json": { schema } } } : { schema };
}

function readTypes(encoding: unknown): Map<string, readonly string[]> {
  const types = new Map<string, readonly string[]>();
  for (const [name, given] of Object.entries(isObject(encoding) ? encoding : {})) {
    const contentType = isObject(given) ? given["contentType"] : undefined;
    if (typeof contentType !== "string") continue;
    types.set(
      name,
      contentType.split(",").map((each) => readTypeName(each)),
    );
  }
  return types;
}

// The length of a file is that of its bytes.
function readText({ type, content }: FormPart): string {
  const isText = type === undefined || isJsonType(type) || type.startsWith("text/");
  return content.toString(isText ? "utf8" : "latin1");
}
