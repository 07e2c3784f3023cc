// Schemas of OpenAPI documents: those of version 3.0 are converted to JSON Schema 2020-12, then compiled.
import { createRequire } from "node:module";
import { isIP } from "node:net";
import { hasUniqueItems } from "@platform/kernel/content";
import type * as ajv2020 from "ajv/dist/2020.js";
import type { Ajv2020, ValidateFunction } from "ajv/dist/2020.js";
import { RE2JS } from "re2js";
import { isHostname, isMailbox, isUri } from "../text-formats.ts";

// Loaded with the first document: every thread of a gateway would otherwise load 86 modules at its start.
const require = createRequire(import.meta.url);

/** A JSON object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The side whose messages a schema describes: properties that only the other side sends are not required. */
export type Direction = "request" | "response";

const COMPONENTS = "components";
const REFERENCES_MAX = 32;
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

/** Keywords whose meaning depends on a place that conversion changes. */
const UNSUPPORTED = new Set(["$dynamicRef", "$recursiveRef"]);

const FOREIGN = { request: "readOnly", response: "writeOnly" } as const;

/** Compiles the schemas of one document. */
export class SchemaCompiler {
  readonly #isVersion30: boolean;
  /** Some schema has `unevaluatedProperties` or `unevaluatedItems`. */
  readonly #hasUnevaluated: boolean;
  readonly #components: JsonObject;
  readonly #compilers: Readonly<Record<Direction, Ajv2020>>;

  /** Throws if a schema of the components cannot be read. `document` is the whole document. */
  constructor(version: string, components: JsonObject, document: JsonObject) {
    this.#hasUnevaluated = JSON.stringify(document).includes('"unevaluated');
    this.#isVersion30 = version.startsWith("3.0.");
    this.#components = components;
    this.#compilers = {
      request: createAjv(this.#convertMap(components, "request")),
      response: createAjv(this.#convertMap(components, "response")),
    };
  }

  /** Compiles a schema for the messages of one side. */
  compile(schema: unknown, direction: Direction): ValidateFunction {
    return this.#compilers[direction].compile(
      this.#convert(schema, direction) as JsonObject | boolean,
    );
  }

  #convert(schema: unknown, direction: Direction, isInIf = false): unknown {
    if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return schema;
    const { $ref, nullable } = schema as JsonObject;
    // In 3.0, a reference replaces all that is written beside it.
    const isReplaced = this.#isVersion30 && $ref !== undefined;
    const converted: Record<string, unknown> = {};
    const convert = (value: unknown): unknown => this.#convert(value, direction, isInIf);
    for (const [key, value] of Object.entries(isReplaced ? { $ref, nullable } : schema)) {
      if (UNSUPPORTED.has(key)) throw new Error(`${key} is not supported`);
      if (key === "__proto__") continue;
      if (key === "$ref") converted[key] = convertReference(value);
      else if (key === "if") converted[key] = this.#convertIf(value, direction, isInIf);
      else if (SINGLE.has(key)) converted[key] = convert(value);
      else if (LISTS.has(key) && Array.isArray(value)) {
        converted[key] = value.map(convert);
      } else if (MAPS.has(key)) {
        converted[key] = this.#convertMap(value as JsonObject, direction, isInIf);
      } else if (key === "required" && Array.isArray(value)) {
        const own = value.filter((name) => !this.#isForeign(schema as JsonObject, name, direction));
        if (own.length > 0) converted[key] = own;
      } else if (key !== "$id" && key !== "id" && key !== "$schema") converted[key] = value;
    }
    if (this.#isVersion30) return convertFrom30(converted);
    return this.#hasUnevaluated && "if" in converted ? spellOutIf(converted) : converted;
  }

  // It is written twice: see `spellOutIf`.
  #convertIf(schema: unknown, direction: Direction, isInIf: boolean): unknown {
    if (isInIf && this.#hasUnevaluated) {
      throw new Error("if within if is not supported beside unevaluatedProperties or -Items");
    }
    return this.#convert(schema, direction, true);
  }

  #convertMap(map: JsonObject, direction: Direction, isInIf = false): Record<string, unknown> {
    // The compiler ignores it: a body could have any value there.
    if (Object.hasOwn(map, "__proto__")) throw new Error("the name __proto__ is not supported");
    return Object.fromEntries(
      Object.entries(map).map(([name, each]) => [name, this.#convert(each, direction, isInIf)]),
    );
  }

  // `required` of a readOnly property applies to responses only (OpenAPI 3.0.3 section 4.7.24.2).
  #isForeign({ properties }: JsonObject, name: unknown, direction: Direction): boolean {
    let member: unknown =
      isObject(properties) && typeof name === "string" && Object.hasOwn(properties, name)
        ? properties[name]
        : undefined;
    for (let count = 0; count < REFERENCES_MAX && isObject(member); count++) {
      if (member[FOREIGN[direction]] === true) return true;
      const [, target] = SCHEMA_REF.exec(String(member["$ref"])) ?? [];
      member = target === undefined ? undefined : this.#components[target];
    }
    return false;
  }
}

function createAjv($defs: JsonObject): Ajv2020 {
  const { Ajv2020: Compiler } = require("ajv/dist/2020.js") as typeof ajv2020;
  const ajv = new Compiler({
    strict: false,
    // 1e999 is no number for most upstreams.
    strictNumbers: true,
    logger: false,
    // Defaults would change values that are not forwarded anyway.
    useDefaults: false,
    // Names of Object.prototype are ordinary names of members.
    ownProperties: true,
    formats: FORMATS,
    code: { regExp: linearRegExp, process: forgetPrototypes },
  });
  // The compiler's own divides binary fractions: 19.99 is not a multiple of 0.01.
  ajv.removeKeyword("multipleOf");
  ajv.addKeyword({
    keyword: "multipleOf",
    type: "number",
    schemaType: "number",
    validate: (divisor: number, value: number) => isMultiple(value, divisor),
    error: { message: ({ schema }) => `must be multiple of ${String(schema)}` },
  });
  // The compiler's own compares each item with each other one: a body of many objects would hold the thread for hours.
  ajv.removeKeyword("uniqueItems");
  ajv.addKeyword({
    keyword: "uniqueItems",
    type: "array",
    schemaType: "boolean",
    validate: (isUnique: boolean, items: unknown[]) => !isUnique || hasUniqueItems(items),
    error: { message: "must NOT have duplicate items" },
  });
  ajv.addSchema({ $id: COMPONENTS, $defs }, COMPONENTS, undefined, false);
  return ajv;
}

/** Members that have been evaluated are kept in objects, which inherit names. */
function forgetPrototypes(code: string): string {
  return code.replaceAll(/\b(props\d+ ?= ?(?:props\d+ ?\|\| ?)?)\{\}/g, "$1{__proto__:null}");
}

/**
 * The same condition by other keywords. The compiler takes what `if` has evaluated for evaluated although it failed, and
 * forgets it without `then` (JSON Schema 2020-12 Core, section 10.2.2).
 */
function spellOutIf({
  if: condition,
  then: consequence = true,
  else: alternative = true,
  ...rest
}: Record<string, unknown>): JsonObject {
  const branches = {
    anyOf: [{ allOf: [condition, consequence] }, { allOf: [{ not: condition }, alternative] }],
  };
  return { ...rest, allOf: [...listOf(rest["allOf"]), branches] };
}

/** True if the quotient of two numbers, in their shortest decimal notation, is an integer. */
function isMultiple(value: number, divisor: number): boolean {
  if (!Number.isFinite(value) || !(divisor > 0)) return false;
  const [dividend, scale] = readDecimal(value);
  const [divisorDigits, divisorScale] = readDecimal(divisor);
  const common = Math.max(scale, divisorScale);
  const raise = (digits: bigint, by: number): bigint => digits * 10n ** BigInt(common - by);
  return raise(dividend, scale) % raise(divisorDigits, divisorScale) === 0n;
}

/** Digits and their number after the point: 19.99 is 1999 and 2. */
function readDecimal(value: number): [digits: bigint, scale: number] {
  const [mantissa = "0", exponent = "0"] = String(value).split("e");
  const [whole = "0", fraction = ""] = mantissa.split(".");
  return [BigInt(`${whole}${fraction}`), fraction.length - Number(exponent)];
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

type Format =
  | ((value: string) => boolean)
  | { type: "number"; validate: (value: number) => boolean };

const DATE_TIME = /^(\d{4}-\d{2}-\d{2})[Tt ](.{1,32})$/;
// The second 60 is a leap second (RFC 3339 section 5.6).
const TIME =
  /^(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d{1,12})?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** Formats that are checked, each in linear time; others are accepted. */
const FORMATS: Readonly<Record<string, Format>> = {
  date: isDate,
  "date-time": (value) => {
    const [, date = "", time = ""] = DATE_TIME.exec(value) ?? [];
    return isDate(date) && TIME.test(time);
  },
  uuid: (value) => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value),
  email: isMailbox,
  uri: isUri,
  hostname: isHostname,
  ipv4: (value) => isIP(value) === 4,
  ipv6: (value) => isIP(value) === 6,
  int32: {
    type: "number",
    validate: (value) => value >= -2_147_483_648 && value <= 2_147_483_647,
  },
  byte: (value) => value.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(value),
};

// The engine moves 30 February to March.
function isDate(value: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(value)) return false;
  const ms = Date.parse(`${value}T00:00:00Z`);
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(value);
}

// Patterns come from the document, texts from clients: a backtracking expression could take forever.
const linearRegExp = Object.assign(
  (pattern: string) => {
    // The escapes of JavaScript, such as \u00e9.
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
    return {
      test: (text: string) => compiled.matcher(text).find(),
      // The compiler treats expressions with the same text as equal.
      toString: () => `/${pattern}/`,
    };
  },
  { code: "linearRegExp" },
);

/** A value as a list; undefined is the empty list. */
export function listOf(value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  return Array.isArray(value) ? value : [value];
}

/** True for objects that are not lists. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
