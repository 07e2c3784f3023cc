// Texts of parameters and forms as values of the types that a schema allows.
import { isObject, type JsonObject, listOf } from "./openapi-schema.ts";

/** Follows the references of a schema. */
export type ResolveSchema = (given: unknown) => JsonObject;

// The grammar of JSON: what else a number can look like ("0x10", "01", " 1", "Infinity"), upstreams read differently.
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const INTEGER = /^-?(?:0|[1-9]\d*)$/;
const DEPTH_MAX = 32;

/** Converts texts, alone or in lists and objects, by the schemas of one document. */
export class TextConverter {
  readonly #resolve: ResolveSchema;
  readonly #parts = new WeakMap<object, readonly JsonObject[]>();
  readonly #types = new WeakMap<object, ReadonlySet<string>>();

  constructor(resolve: ResolveSchema) {
    this.#resolve = resolve;
  }

  /**
   * The value that a schema means by a text. With `prefersText`, a text stays one where the schema allows both: `5` is a
   * string as well as an integer.
   */
  convert(value: unknown, schema: unknown, prefersText: boolean): unknown {
    return this.#convert(value, [schema], prefersText, 0);
  }

  /** The schema itself and all that are combined with it, without their references. */
  listParts(schema: unknown): readonly JsonObject[] {
    if (!isObject(schema)) return [];
    const known = this.#parts.get(schema);
    if (known !== undefined) return known;
    const parts = new Set<JsonObject>();
    this.#expand(schema, parts);
    const list = [...parts];
    this.#parts.set(schema, list);
    return list;
  }

  #expand(schema: unknown, parts: Set<JsonObject>): void {
    if (!isObject(schema) || parts.has(schema)) return;
    parts.add(schema);
    if (schema["$ref"] !== undefined) this.#expand(this.#resolve(schema), parts);
    for (const key of ["allOf", "anyOf", "oneOf", "then", "else"]) {
      for (const part of listOf(schema[key])) this.#expand(part, parts);
    }
  }

  #convert(
    value: unknown,
    schemas: readonly unknown[],
    prefersText: boolean,
    depth: number,
  ): unknown {
    if (depth > DEPTH_MAX) return value;
    if (typeof value === "string") return convertText(value, this.#listTypes(schemas), prefersText);
    const parts = schemas.flatMap((schema) => this.listParts(schema));
    if (Array.isArray(value)) {
      return value.map((item: unknown, index) => {
        const items = parts.map(
          ({ prefixItems, items: rest }) => listOf(prefixItems)[index] ?? rest,
        );
        return this.#convert(item, items, prefersText, depth + 1);
      });
    }
    if (!isObject(value)) return value;
    const object = Object.create(null) as Record<string, unknown>;
    for (const [name, item] of Object.entries(value)) {
      const members = parts.map(({ properties, additionalProperties }) =>
        isObject(properties) && Object.hasOwn(properties, name)
          ? properties[name]
          : additionalProperties,
      );
      object[name] = this.#convert(item, members, prefersText, depth + 1);
    }
    return object;
  }

  #listTypes(schemas: readonly unknown[]): ReadonlySet<string> {
    const [first] = schemas;
    if (schemas.length !== 1 || !isObject(first)) return this.#readTypes(schemas);
    const known = this.#types.get(first);
    if (known !== undefined) return known;
    const types = this.#readTypes(schemas);
    this.#types.set(first, types);
    return types;
  }

  // A schema without a type allows the types of its values.
  #readTypes(schemas: readonly unknown[]): ReadonlySet<string> {
    const types = new Set<string>();
    for (const part of schemas.flatMap((schema) => this.listParts(schema))) {
      for (const type of listOf(part["type"])) types.add(String(type));
      if (part["nullable"] === true) types.add("null");
      if (part["type"] !== undefined) continue;
      const values = [
        ...listOf(part["enum"]),
        ...(Object.hasOwn(part, "const") ? [part["const"]] : []),
      ];
      for (const value of values) types.add(value === null ? "null" : typeof value);
    }
    return types;
  }
}

function convertText(text: string, types: ReadonlySet<string>, prefersText: boolean): unknown {
  if (prefersText && types.has("string")) return text;
  if (types.has("integer") && INTEGER.test(text)) return Number(text);
  if (types.has("number") && NUMBER.test(text)) return Number(text);
  if (types.has("boolean") && (text === "true" || text === "false")) return text === "true";
  return text === "" && types.has("null") && !types.has("string") ? null : text;
}
