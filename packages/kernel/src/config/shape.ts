// Describes the allowed values of a schema in words, from its JSON Schema.
import { z } from "zod";
import type { JsonPath } from "./json.ts";

const SAFE_MAX = Number.MAX_SAFE_INTEGER;

/** The subset of JSON Schema (2020-12) that zod emits and this file reads. */
export interface Shape {
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  description?: string;
  anyOf?: Shape[];
  oneOf?: Shape[];
  allOf?: Shape[];
  items?: Shape;
  properties?: Record<string, Shape>;
  required?: string[];
  additionalProperties?: Shape | boolean;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  pattern?: string;
  format?: string;
  $ref?: string;
  $defs?: Record<string, Shape>;
}

/** Returns the shape of a schema's input. */
export function readShape(schema: z.ZodType): Shape {
  return z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Shape;
}

/** Returns the possible shapes of a value at a path. */
export function findShapes(root: Shape, path: JsonPath): Shape[] {
  let shapes = expand(root, root);
  for (const step of path) {
    shapes = shapes.flatMap((shape) => {
      const next =
        typeof step === "number"
          ? shape.items
          : (readOwn(shape.properties, step) ??
            (typeof shape.additionalProperties === "object"
              ? shape.additionalProperties
              : undefined));
      return next === undefined ? [] : expand(root, next);
    });
  }
  return shapes;
}

/** Returns the member names of objects at a path. */
export function listMembers(root: Shape, path: JsonPath): string[] {
  return [
    ...new Set(findShapes(root, path).flatMap((shape) => Object.keys(shape.properties ?? {}))),
  ];
}

/** Returns the JSON types of these shapes: `string`, `integer`, `array` … */
export function listTypes(shapes: readonly Shape[]): Set<string> {
  return new Set(
    shapes.flatMap((shape) => {
      if (shape.type !== undefined) return shape.type;
      const values = shape.enum ?? (shape.const === undefined ? [] : [shape.const]);
      return values.map((value) => typeof value);
    }),
  );
}

/** Describes the allowed values: `an integer from 1 to 64, or "auto"`. */
export function describeShapes(shapes: readonly Shape[]): string {
  const words = [...new Set(shapes.map(describeShape).filter((text) => text !== ""))];
  return words.join(", or ");
}

function expand(root: Shape, shape: Shape): Shape[] {
  if (shape.$ref !== undefined) {
    const name = /^#\/\$defs\/(.+)$/.exec(shape.$ref)?.[1];
    const target = name === undefined ? root : readOwn(root.$defs, name);
    return target === undefined || target.$ref !== undefined ? [] : expand(root, target);
  }
  const branches = shape.anyOf ?? shape.oneOf;
  if (branches !== undefined) return branches.flatMap((branch) => expand(root, branch));
  if (shape.allOf !== undefined) return shape.allOf.flatMap((part) => expand(root, part));
  return [shape];
}

function readOwn(table: Record<string, Shape> | undefined, name: string): Shape | undefined {
  return table !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;
}

function describeShape(shape: Shape): string {
  if (shape.const !== undefined) return JSON.stringify(shape.const);
  if (shape.enum !== undefined) return shape.enum.map((value) => JSON.stringify(value)).join(" | ");
  switch (shape.type) {
    case "integer":
      return `an integer${describeRange(shape)}`;
    case "number":
      return `a number${describeRange(shape)}`;
    case "boolean":
      return "true | false";
    case "string":
      return describeString(shape);
    case "array": {
      const item =
        shape.items === undefined ? "" : describeShapes(expand(shape.items, shape.items));
      const count = describeCount("item", shape.minItems, shape.maxItems);
      return `a list${count === "" ? "" : ` of ${count}`}${item === "" ? "" : ` (each ${item})`}`;
    }
    case "object":
      return "an object";
    case "null":
      return "null";
    default:
      return "";
  }
}

function describeRange(shape: Shape): string {
  const low = shape.minimum !== undefined && shape.minimum > -SAFE_MAX ? shape.minimum : undefined;
  const high = shape.maximum !== undefined && shape.maximum < SAFE_MAX ? shape.maximum : undefined;
  const parts: string[] = [];
  if (low !== undefined && high !== undefined) parts.push(`from ${low} to ${high}`);
  else if (low !== undefined) parts.push(`of at least ${low}`);
  else if (high !== undefined) parts.push(`of at most ${high}`);
  if (shape.exclusiveMinimum !== undefined) parts.push(`above ${shape.exclusiveMinimum}`);
  if (shape.exclusiveMaximum !== undefined) parts.push(`below ${shape.exclusiveMaximum}`);
  if (shape.multipleOf !== undefined && shape.multipleOf !== 1)
    parts.push(`in steps of ${shape.multipleOf}`);
  return parts.length === 0 ? "" : ` ${parts.join(", ")}`;
}

function describeString(shape: Shape): string {
  const count = describeCount("character", shape.minLength, shape.maxLength);
  if (shape.format === "uri") return "a URL";
  if (shape.format !== undefined) return `a string in the format "${shape.format}"`;
  const form = shape.pattern === undefined ? "" : ` that matches ${shape.pattern}`;
  return `a string${form}${count === "" ? "" : ` of ${count}`}`;
}

function describeCount(noun: string, least: number | undefined, most: number | undefined): string {
  const bound = most ?? least;
  if (bound === undefined) return "";
  const nouns = bound === 1 ? noun : `${noun}s`;
  if (least !== undefined && most !== undefined) return `${least} to ${most} ${nouns}`;
  return `${most === undefined ? "at least" : "at most"} ${bound} ${nouns}`;
}
