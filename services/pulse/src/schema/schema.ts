// A topic's schema: a plain map of fields to types, or JSON Schema; validation of payloads and compatibility.
import { z } from "zod";
import { hasUniqueItems } from "@platform/kernel/content";
import { PlatformError, readPatternFault, type Fault } from "@platform/kernel/errors";
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import { RE2JS } from "re2js";
import { checkSchemaBounds } from "./schema-bounds.ts";

/** A violation: `field` is a dotted path, "" for the payload itself. */
interface Violation {
  field: string;
  message: string;
}

/** A violation for programs. */
export interface Breach {
  /** JSON Pointer (RFC 6901) of the value, "" for the payload itself. */
  readonly pointer: string;
  /** Keyword of JSON Schema that the value breaks; a map has `type` and `required`. */
  readonly keyword: string;
  /** JSON Pointer of the keyword in the schema, "" if it is none of this document. */
  readonly schemaPointer: string;
  /** The property that is missing, or one too many. */
  readonly property?: string;
  /** Types that the value may have. */
  readonly types?: readonly string[];
}

/** A map of fields to types, or a JSON Schema. */
export const SCHEMA_KINDS = ["map", "json-schema"] as const;

/** A schema as it was set, for the API. */
export const schemaDocument = z.record(z.string(), z.unknown());

/** A compiled schema. */
export interface CompiledSchema {
  kind: (typeof SCHEMA_KINDS)[number];
  document: Readonly<Record<string, unknown>>;
  /** Violations of a parsed payload; empty if it conforms. */
  check: (payload: unknown) => Violation[];
  /** The same violations for programs. */
  explain: (payload: unknown) => Breach[];
}

const fieldTypes: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  object: isObject,
  array: (value) => Array.isArray(value),
  null: (value) => value === null,
};
const VIOLATIONS_MAX = 50;
/** Keywords of JSON Schema 2020-12 with text values. */
const TEXT_KEYWORDS: ReadonlySet<string> = new Set([
  "type",
  "title",
  "description",
  "format",
  "pattern",
  "const",
  "default",
  "contentEncoding",
  "contentMediaType",
]);

/**
 * Compiles a registered document. A document whose values are all type names is a map (each field is required, others
 * are allowed); `{"type": "object"}` and everything else is JSON Schema 2020-12. Throws `validation_failed`.
 */
export function compileSchema(document: unknown, origin: "new" | "stored" = "new"): CompiledSchema {
  if (!isObject(document)) throw refuse("it has to be a JSON object");
  if (isMap(document)) return compileMap(document);
  const misspelt = findMisspelt(document);
  if (misspelt === undefined) return compileJsonSchema(document, origin);
  const types = Object.keys(fieldTypes).join(", ");
  throw refuse(`field ${misspelt} has no known type; there are ${types}`);
}

/** Why payloads that conform to `before` might not conform to `after`; `undefined` if all do, as far as can be determined. */
export function explainBreak(before: CompiledSchema, after: CompiledSchema): string | undefined {
  if (before.kind !== after.kind) return "it is a schema of another kind";
  if (before.kind === "map") {
    for (const [field, type] of Object.entries(after.document)) {
      if (!Object.hasOwn(before.document, field)) {
        return `field ${field} was not required before`;
      }
      const widened = before.document[field] === "integer" && type === "number";
      if (before.document[field] !== type && !widened) return `field ${field} had another type`;
    }
    return undefined;
  }
  return explainJsonBreak(before.document, after.document, "");
}

function isMap(document: Readonly<Record<string, unknown>>): boolean {
  const entries = Object.entries(document);
  if (entries.length === 1 && document["type"] === "object") return false;
  return (
    entries.length > 0 &&
    entries.every(([, type]) => typeof type === "string" && Object.hasOwn(fieldTypes, type))
  );
}

// JSON Schema ignores unknown keywords, so a map with a typo would accept everything.
function findMisspelt(document: Readonly<Record<string, unknown>>): string | undefined {
  const entries = Object.entries(document);
  if (!entries.every(([, value]) => typeof value === "string")) return undefined;
  const isField = ([name]: [string, unknown]) =>
    !TEXT_KEYWORDS.has(name) && !name.startsWith("$") && !name.startsWith("x-");
  if (!entries.some(isField)) return undefined;
  return entries.find(([, type]) => !Object.hasOwn(fieldTypes, String(type)))?.[0];
}

function compileMap(document: Readonly<Record<string, unknown>>): CompiledSchema {
  const fields = Object.entries(document as Record<string, string>);
  return {
    kind: "map",
    document,
    check(payload) {
      if (!isObject(payload)) return [{ field: "", message: "must be a JSON object" }];
      const violations: Violation[] = [];
      for (const [field, type] of fields) {
        if (!Object.hasOwn(payload, field)) violations.push({ field, message: "is missing" });
        else if (!fieldTypes[type]!(payload[field])) {
          violations.push({ field, message: `must be of type ${type}` });
        }
      }
      return violations.slice(0, VIOLATIONS_MAX);
    },
    explain(payload) {
      if (!isObject(payload)) {
        return [{ pointer: "", keyword: "type", schemaPointer: "", types: ["object"] }];
      }
      const breaches = fields.flatMap(([property, type]): Breach[] => {
        const pointer = `/${property.replaceAll("~", "~0").replaceAll("/", "~1")}`;
        if (!Object.hasOwn(payload, property)) {
          return [{ pointer: "", keyword: "required", schemaPointer: pointer, property }];
        }
        if (fieldTypes[type]!(payload[property])) return [];
        return [{ pointer, keyword: "type", schemaPointer: pointer, types: [type] }];
      });
      return breaches.slice(0, VIOLATIONS_MAX);
    },
  };
}

function compileJsonSchema(
  document: Readonly<Record<string, unknown>>,
  origin: "new" | "stored",
): CompiledSchema {
  checkSchemaBounds(document, origin);
  let validate: ValidateFunction;
  try {
    // One compiler per schema, since a compiler keeps every schema it compiled.
    validate = createCompiler().compile(document);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "it cannot be compiled";
    throw refuse(reason, readPatternFault(error));
  }
  return {
    kind: "json-schema",
    document,
    check(payload) {
      if (validate(payload)) return [];
      return (validate.errors ?? []).map(({ instancePath, params, message = "is wrong" }) => ({
        field: toField(instancePath, params),
        message,
      }));
    },
    explain(payload) {
      return validate(payload) ? [] : (validate.errors ?? []).map(toBreach);
    },
  };
}

function toBreach({ instancePath, keyword, schemaPath, params }: ErrorObject): Breach {
  const { missingProperty, additionalProperty, unevaluatedProperty, type } = params as {
    missingProperty?: string;
    additionalProperty?: string;
    unevaluatedProperty?: string;
    type?: string | string[];
  };
  const property = missingProperty ?? additionalProperty ?? unevaluatedProperty;
  return {
    pointer: instancePath,
    keyword,
    // Of a reference, the place in another document.
    schemaPointer: schemaPath.startsWith("#/") ? decodeURIComponent(schemaPath.slice(1)) : "",
    ...(property === undefined ? {} : { property }),
    ...(type === undefined ? {} : { types: [type].flat() }),
  };
}

function createCompiler(): Ajv2020 {
  const compiler = new Ajv2020({
    strict: false,
    logger: false,
    // Names of Object.prototype are ordinary names of members.
    ownProperties: true,
    code: { regExp: linearRegExp, process: forgetPrototypes },
  });
  // The compiler's own compares all pairs of items: one message of 1 MB would hold the broker for seconds.
  compiler.removeKeyword("uniqueItems");
  compiler.addKeyword({
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    validate: (isUnique: boolean, items: unknown[]) => !isUnique || hasUniqueItems(items),
    error: { message: "must NOT have duplicate items" },
  });
  return compiler;
}

/** Members that have been evaluated are kept in objects, which inherit names. */
function forgetPrototypes(code: string): string {
  return code.replaceAll(/\b(props\d+ ?= ?(?:props\d+ ?\|\| ?)?)\{\}/g, "$1{__proto__:null}");
}

// RE2 takes time in proportion to the text for any pattern.
const linearRegExp = Object.assign(
  (pattern: string) => {
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
    return {
      test: (text: string) => compiled.matcher(text).find(),
      // The compiler treats expressions with the same text as equal.
      toString: () => `/${pattern}/`,
    };
  },
  { code: "linearRegExp" },
);

function toField(instancePath: string, params: unknown): string {
  const path = instancePath.slice(1).replaceAll("/", ".");
  const missing = isObject(params) ? params["missingProperty"] : undefined;
  return typeof missing === "string" ? [path, missing].filter(Boolean).join(".") : path;
}

function explainJsonBreak(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
  path: string,
): string | undefined {
  const place = path === "" ? "the payload" : `field ${path}`;
  const hadTypes = listOf(before["type"]);
  const types = listOf(after["type"]);
  const lost = hadTypes.find(
    (type) => !types.includes(type) && !(type === "integer" && types.includes("number")),
  );
  if (types.length > 0 && (hadTypes.length === 0 || lost !== undefined)) {
    return `${place} may not have every type that it could have before`;
  }
  const required = listOf(before["required"]);
  const added = listOf(after["required"]).find((name) => !required.includes(name));
  if (added !== undefined) return `${place} did not have to have ${added} before`;
  if (after["additionalProperties"] === false && before["additionalProperties"] !== false) {
    return `${place} could have other members before`;
  }
  const hadProperties = isObject(before["properties"]) ? before["properties"] : {};
  const properties = isObject(after["properties"]) ? after["properties"] : {};
  for (const [name, schema] of Object.entries(properties)) {
    const had = Object.hasOwn(hadProperties, name) ? hadProperties[name] : {};
    if (!isObject(schema) || !isObject(had)) continue;
    const reason = explainJsonBreak(had, schema, path === "" ? name : `${path}.${name}`);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function listOf(value: unknown): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  return list.filter((item) => typeof item === "string");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function refuse(reason: string, fault: Fault = {}): PlatformError {
  const message = `The schema is invalid: ${reason}.`;
  if (fault.code === undefined) return new PlatformError("validation_failed", message);
  const errors = [{ in: "body", path: "schema", message, ...fault }];
  return new PlatformError("validation_failed", message, { fields: { errors } });
}
