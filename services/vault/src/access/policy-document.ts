// Strict parsing of the JSON of a policy. Anything invalid is MalformedPolicy.
import { malformedPolicy } from "./malformed.ts";

const LIST_MAX = 500;

/** The value of a name or of its inverse; a statement has exactly one of the two. */
export function pickOne(
  statement: Record<string, unknown>,
  name: string,
  inverse: string,
): { inverted: boolean; value: unknown } {
  const [plain, inverted] = [statement[name], statement[inverse]];
  if ((plain === undefined) === (inverted === undefined)) {
    throw malformedPolicy(`a statement must have either ${name} or ${inverse}`);
  }
  return plain === undefined
    ? { inverted: true, value: inverted }
    : { inverted: false, value: plain };
}

/** A string, or a list of strings. */
export function readTexts(value: unknown, name: string): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (
    list.length === 0 ||
    list.length > LIST_MAX ||
    !list.every((item) => typeof item === "string")
  ) {
    throw malformedPolicy(`${name} must be a string or a list of strings`, [name]);
  }
  return list;
}

/** An object that is not a list. */
export function asObject(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw malformedPolicy(`${name} must be an object`);
  }
  return value as Record<string, unknown>;
}

/** Refuses names that are not listed: unknown names must not be ignored. */
export function allowNames(
  object: Record<string, unknown>,
  names: readonly string[],
  what: string,
): void {
  const stranger = Object.keys(object).find((name) => !names.includes(name));
  if (stranger !== undefined)
    throw malformedPolicy(`${stranger} is unknown in ${what}`, [stranger]);
}
