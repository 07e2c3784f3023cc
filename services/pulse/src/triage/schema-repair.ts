// Finds the change that makes payloads fit their topic's schema.
import {
  changePayload,
  convertValue,
  CONVERTED_TYPES,
  type LetterChange,
} from "../deadletter/convert.ts";
import { readPointer, readValue, type Json } from "../deadletter/json-patch.ts";
import { compileSchema, type Breach, type CompiledSchema } from "../schema/schema.ts";
import type { LetterTrial, TriedLetter } from "./letter-trial.ts";

/** Breaches that are repaired one after another. */
const STEPS_MAX = 4;
/** Letters that decide on a step. */
const LOOKED_MAX = 50;
const TYPO_DISTANCE_MAX = 2;
const TYPO_CHARACTERS_MIN = 4;
/** Share of letters or messages that must agree. */
const AGREED_SHARE = 0.95;
const KEYWORDS_TRIED_MAX = 10;
/** Names of an object among which a similar one is searched. */
const NAMES_LOOKED_MAX = 200;

/** A repair of payloads: each step explains itself. */
export interface Repair extends LetterChange {
  readonly causes: readonly string[];
}

type Step = LetterChange & { readonly cause: string };

/**
 * Repairs the most frequent breach, tries again, and so on. `accepted`: payloads that the topic has accepted. Undefined if nothing
 * was found for the first one.
 */
export async function findRepair(
  trial: LetterTrial,
  letters: readonly TriedLetter[],
  accepted: readonly Buffer[],
): Promise<Repair | undefined> {
  const { schema } = trial;
  if (schema === undefined) return undefined;
  const looked = letters.slice(0, LOOKED_MAX);
  let repair: Repair = { causes: [] };
  for (let step = 0; step < STEPS_MAX && !trial.isOver; step++) {
    const { results } = await trial.runAll(looked, repair);
    const broken = looked.flatMap(({ payload }, index) => {
      const result = results[index];
      return result?.kind === "schema" ? [{ payload, breach: result.breaches[0]! }] : [];
    });
    const breach = findMostFrequent(broken.map((each) => each.breach));
    if (breach === undefined) break;
    const payloads = broken.flatMap((each) => (isSame(each.breach, breach) ? [each.payload] : []));
    const found =
      breach.keyword === "type"
        ? repairType(toOriginal(breach.pointer, repair), breach.types ?? [], payloads)
        : repairMembers(schema, breach, changeAll(payloads, repair), accepted);
    if (found === undefined) break;
    repair = {
      causes: [...repair.causes, found.cause],
      convert: [...(repair.convert ?? []), ...(found.convert ?? [])],
      patch: [...(repair.patch ?? []), ...(found.patch ?? [])],
    };
  }
  if (repair.causes.length === 0) return undefined;
  const { convert = [], patch = [] } = repair;
  return {
    causes: repair.causes,
    ...(convert.length > 0 ? { convert } : {}),
    ...(patch.length > 0 ? { patch } : {}),
  };
}

/** The keyword without which nearly all letters would pass, and the schema without it. */
export async function findStrictKeyword(
  trial: LetterTrial,
  letters: readonly TriedLetter[],
): Promise<{ pointer: string; trial: LetterTrial; document: Json } | undefined> {
  const { schema } = trial;
  if (schema === undefined) return undefined;
  const looked = letters.slice(0, LOOKED_MAX);
  const { results } = await trial.runAll(looked);
  const pointers = new Set(
    results.flatMap((result) =>
      result.kind === "schema" ? result.breaches.map(({ schemaPointer }) => schemaPointer) : [],
    ),
  );
  for (const pointer of [...pointers].slice(0, KEYWORDS_TRIED_MAX)) {
    const document = pointer === "" ? undefined : withoutKeyword(schema, pointer);
    if (document === undefined || trial.isOver) continue;
    const loosened = trial.withSchema(compileSchema(document, "stored"));
    const { evidence } = await loosened.runAll(looked);
    if (evidence.pass >= AGREED_SHARE * looked.length)
      return { pointer, trial: loosened, document };
  }
  return undefined;
}

function withoutKeyword(schema: CompiledSchema, pointer: string): Json | undefined {
  const document = structuredClone(schema.document) as { [name: string]: Json };
  const parts = readPointer(pointer);
  let parent: Json = document;
  for (const part of parts.slice(0, -1)) {
    if (typeof parent !== "object" || parent === null || !Object.hasOwn(parent, part))
      return undefined;
    parent = (parent as { [name: string]: Json })[part]!;
  }
  if (typeof parent !== "object" || parent === null || Array.isArray(parent)) return undefined;
  delete parent[parts.at(-1)!];
  // A map without fields, or an empty schema, is no schema any more.
  return Object.keys(document).length === 0 ? undefined : document;
}

function findMostFrequent(breaches: readonly Breach[]): Breach | undefined {
  const groups = Map.groupBy(breaches, keyOf);
  const [most] = [...groups.values()].toSorted((one, other) => other.length - one.length);
  return most?.[0];
}

function isSame(one: Breach, other: Breach): boolean {
  return keyOf(one) === keyOf(other);
}

function keyOf({ pointer, keyword, property }: Breach): string {
  return JSON.stringify([pointer, keyword, property]);
}

/** The place that a value had before the members above it were moved: conversions come before the patch. */
function toOriginal(pointer: string, { patch = [] }: LetterChange): string {
  let original = pointer;
  for (const { op, path, from } of patch.toReversed()) {
    if (op !== "move" || from === undefined) continue;
    if (original === path || original.startsWith(`${path}/`)) {
      original = from + original.slice(path.length);
    }
  }
  return original;
}

function changeAll(payloads: readonly Buffer[], change: LetterChange): Buffer[] {
  // The trial has applied the change to each.
  return payloads.map((payload) => changePayload(payload, change) ?? payload);
}

function repairMembers(
  schema: CompiledSchema,
  breach: Breach,
  payloads: readonly Buffer[],
  accepted: readonly Buffer[],
): Step | undefined {
  const { pointer, keyword, property } = breach;
  switch (keyword) {
    case "required":
      return property === undefined
        ? undefined
        : repairMissing(schema, breach, property, payloads, accepted);
    case "additionalProperties":
    case "unevaluatedProperties": {
      if (property === undefined) return undefined;
      const path = `${pointer}/${escapePart(property)}`;
      return { patch: [{ op: "remove", path }], cause: `${path} is not in the schema` };
    }
    default:
      return undefined;
  }
}

function repairMissing(
  schema: CompiledSchema,
  { pointer }: Breach,
  property: string,
  payloads: readonly Buffer[],
  accepted: readonly Buffer[],
): Step | undefined {
  const path = `${pointer}/${escapePart(property)}`;
  const declared = readSchemaProperties(schema, pointer);
  const similar = findSimilar(property, pointer, payloads, new Set(Object.keys(declared)));
  if (similar !== undefined) {
    const from = `${pointer}/${escapePart(similar)}`;
    return { patch: [{ op: "move", from, path }], cause: `${path} is missing; ${from} is there` };
  }
  const own = declared[property];
  if (isObject(own) && Object.hasOwn(own, "default")) {
    const value = own["default"]!;
    return {
      patch: [{ op: "add", path, value }],
      cause: `${path} is missing; the schema has a default`,
    };
  }
  const value = findUsualValue(path, accepted);
  if (value === undefined) return undefined;
  return {
    patch: [{ op: "add", path, value }],
    cause: `${path} is missing; accepted messages have the same value there`,
  };
}

function repairType(
  pointer: string,
  types: readonly string[],
  payloads: readonly Buffer[],
): Step | undefined {
  for (const to of CONVERTED_TYPES) {
    if (!types.includes(to)) continue;
    const values = payloads.map((payload) => readValue(payload, pointer));
    const count = values.filter(
      (value) => value !== undefined && convertValue(value, to) !== undefined,
    );
    if (count.length * 2 <= payloads.length) continue;
    return {
      convert: [{ path: pointer, to }],
      cause: `${pointer || "the payload"} is ${to} in another form`,
    };
  }
  return undefined;
}

/** The properties of the schema for the object at a pointer, as far as `properties` and `items` lead to it. */
function readSchemaProperties(schema: CompiledSchema, pointer: string): { [name: string]: Json } {
  if (schema.kind === "map")
    return pointer === "" ? (schema.document as { [name: string]: Json }) : {};
  let at = schema.document as Json;
  for (const name of readPointer(pointer)) {
    if (!isObject(at)) return {};
    const properties = at["properties"];
    const next =
      isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : at["items"];
    if (next === undefined) return {};
    at = next;
  }
  const properties = isObject(at) ? at["properties"] : undefined;
  return isObject(properties) ? properties : {};
}

/** The name that most payloads have instead. */
function findSimilar(
  property: string,
  pointer: string,
  payloads: readonly Buffer[],
  declared: ReadonlySet<string>,
): string | undefined {
  const counts = new Map<string, number>();
  for (const payload of payloads) {
    const parent = readValue(payload, pointer);
    if (!isObject(parent)) continue;
    for (const name of Object.keys(parent).slice(0, NAMES_LOOKED_MAX)) {
      if (declared.has(name) || !isSimilar(name, property)) continue;
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  const [most] = [...counts].toSorted(([, one], [, other]) => other - one);
  return most !== undefined && most[1] * 2 > payloads.length ? most[0] : undefined;
}

function isSimilar(one: string, other: string): boolean {
  const [first, second] = [one, other].map((name) => name.toLowerCase().replaceAll(/[_-]/g, ""));
  if (first === second) return true;
  if (Math.min(one.length, other.length) < TYPO_CHARACTERS_MIN) return false;
  return measureDistance(first!, second!) <= TYPO_DISTANCE_MAX;
}

/** Edits of one letter, or more than the bound (Levenshtein). */
function measureDistance(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > TYPO_DISTANCE_MAX || one.length > 100) return 100;
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [index, letter] of Array.from(one).entries()) {
    const next = [index + 1];
    for (const [column, own] of Array.from(other).entries()) {
      const swap = row[column]! + (letter === own ? 0 : 1);
      next.push(Math.min(swap, row[column + 1]! + 1, next[column]! + 1));
    }
    row = next;
  }
  return row.at(-1)!;
}

function findUsualValue(path: string, accepted: readonly Buffer[]): Json | undefined {
  const counts = new Map<string, number>();
  for (const payload of accepted) {
    const value = readValue(payload, path);
    if (value === undefined) continue;
    const text = JSON.stringify(value);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  const [most] = [...counts].toSorted(([, one], [, other]) => other - one);
  if (most === undefined || most[1] < AGREED_SHARE * accepted.length) return undefined;
  return JSON.parse(most[0]) as Json;
}

function escapePart(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

function isObject(value: Json | undefined): value is { [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
