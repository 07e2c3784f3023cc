// Schemas of OpenAPI documents: those of version 3.0 are converted to JSON Schema 2020-12, then compiled.
import { createRequire } from "node:module";
import { isIP } from "node:net";
import type * as ajv2020 from "ajv/dist/2020.js";
import type { Ajv2020, ValidateFunction } from "ajv/dist/2020.js";
import { RE2JS } from "re2js";

// Loaded with the first document: every thread of a gateway would otherwise load 86 modules at its start.
const require = createRequire(import.meta.url);

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

const COMPONENTS = "components";
const SCHEMA_REF = /^#\/components\/schemas\/([^/]+)((?:\/.*)?)$/;
/** Keywords whose values are a schema, a list of schemas, or schemas by name. */
const SINGLE = new Set([
  "items",
  "additionalProperties",
  "not",
  "if",
  "then",
  "else",
  "contains",
  "propertyNames",
  "unevaluatedItems",
  "unevaluatedProperties",
]);
const LISTS = new Set(["allOf", "anyOf", "oneOf", "prefixItems"]);
const MAPS = new Set(["properties", "patternProperties", "dependentSchemas", "$defs"]);

/** Compiles the schemas of one document. */
export class SchemaCompiler {
  readonly #isVersion30: boolean;
  readonly #ajv: Ajv2020;
  readonly #coercing: Ajv2020;

  /** Throws if a schema of the components cannot be read. */
  constructor(version: string, components: JsonObject) {
    this.#isVersion30 = version.startsWith("3.0.");
    const $defs = this.#convertMap(components);
    this.#ajv = createAjv(false, $defs);
    this.#coercing = createAjv(true, $defs);
  }

  /** Compiles a schema. With `coerces`, texts are converted to the types of the schema. */
  compile(schema: unknown, coerces: boolean): ValidateFunction {
    const converted = this.#convert(schema) as JsonObject | boolean;
    return (coerces ? this.#coercing : this.#ajv).compile(converted);
  }

  #convert(schema: unknown): unknown {
    if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return schema;
    const converted: Record<string, unknown> = {};
    for (const [key, value] of Object.entries(schema)) {
      if (key === "$ref") converted[key] = convertReference(value);
      else if (SINGLE.has(key)) converted[key] = this.#convert(value);
      else if (LISTS.has(key) && Array.isArray(value)) {
        converted[key] = value.map((each) => this.#convert(each));
      } else if (MAPS.has(key)) converted[key] = this.#convertMap(value as JsonObject);
      else if (key !== "$id" && key !== "id" && key !== "$schema") converted[key] = value;
    }
    return this.#isVersion30 ? convertFrom30(converted) : converted;
  }

  #convertMap(map: JsonObject): Record<string, unknown> {
    return Object.fromEntries(
      Object.entries(map).map(([name, each]) => [name, this.#convert(each)]),
    );
  }
}

function createAjv(coerceTypes: boolean, $defs: JsonObject): Ajv2020 {
  const { Ajv2020: Compiler } = require("ajv/dist/2020.js") as typeof ajv2020;
  const ajv = new Compiler({
    strict: false,
    logger: false,
    // Defaults would change values that are not forwarded anyway.
    useDefaults: false,
    coerceTypes,
    formats: FORMATS,
    code: { regExp: linearRegExp },
  });
  ajv.addSchema({ $id: COMPONENTS, $defs }, COMPONENTS, undefined, false);
  return ajv;
}

function convertReference(reference: unknown): string {
  const match = SCHEMA_REF.exec(String(reference));
  if (match === null) throw new Error(`the reference ${String(reference)} is not supported`);
  return `${COMPONENTS}#/$defs/${match[1]}${match[2]}`;
}

// https://spec.openapis.org/oas/v3.0.3 section 4.7.24: `nullable`, and bounds that are exclusive by a flag.
function convertFrom30(schema: Record<string, unknown>): unknown {
  const { nullable, exclusiveMinimum, exclusiveMaximum, ...rest } = schema;
  if (exclusiveMinimum === true) {
    rest["exclusiveMinimum"] = rest["minimum"];
    delete rest["minimum"];
  }
  if (exclusiveMaximum === true) {
    rest["exclusiveMaximum"] = rest["maximum"];
    delete rest["maximum"];
  }
  return nullable === true ? { anyOf: [rest, { type: "null" }] } : rest;
}

/** Formats that are checked, each in linear time; others are accepted. */
const FORMATS: Readonly<Record<string, true | ((value: string) => boolean)>> = {
  date: (value) => /^\d{4}-\d{2}-\d{2}$/.test(value) && !Number.isNaN(Date.parse(value)),
  "date-time": (value) =>
    /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d{1,12})?(?:[Zz]|[+-]\d{2}:\d{2})$/.test(
      value,
    ) && !Number.isNaN(Date.parse(value.replace(" ", "T"))),
  uuid: (value) => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value),
  email: (value) => value.length <= 320 && /^[^\s@]+@[^\s@]+$/.test(value),
  uri: (value) => /^[a-z][a-z0-9+.-]*:/i.test(value) && URL.canParse(value),
  hostname: (value) => value.length <= 253 && /^[a-z0-9.-]+$/i.test(value),
  ipv4: (value) => isIP(value) === 4,
  ipv6: (value) => isIP(value) === 6,
  byte: (value) => value.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(value),
};

// Patterns come from the document, texts from clients: a backtracking expression could take forever.
const linearRegExp = Object.assign(
  (pattern: string) => {
    const compiled = RE2JS.compile(pattern);
    return {
      test: (text: string) => compiled.matcher(text).find(),
      // The compiler treats expressions with the same text as equal.
      toString: () => `/${pattern}/`,
    };
  },
  { code: "linearRegExp" },
);
