// The parts of a policy's JSON, read strictly: what is not what it should be is MalformedPolicy.
import { malformedPolicy } from "./malformed.ts";

const LIST_MAX = 500;

/** The value of a name or of its inverse; a statement has one of the two. */
export function pickOne(
  statement: Record<string, unknown>,
  name: string,
  inverse: string,
): { inverted: boolean; value: unknown } {
  const [plain, inverted] = [statement[name], statement[inverse]];
  if ((plain === undefined) === (inverted === undefined)) {
    throw malformedPolicy(`a statement has either ${name} or ${inverse}`);
  }
  return plain === undefined
    ? { inverted: true, value: inverted }
    : { inverted: false, value: plain };
}

/** A text, or a list of texts. */
export function readTexts(value: unknown, name: string): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (
    list.length === 0 ||
    list.length > LIST_MAX ||
    !list.every((item) => typeof item === "string")
  ) {
    throw malformedPolicy(`${name} is no text and no list of texts`);
  }
  return list;
}

/** An object that is no list. */
export function asObject(value: unknown, name: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw malformedPolicy(`${name} is no object`);
  }
  return value as Record<string, unknown>;
}

/** Refuses names that are not listed: what is not understood must not be ignored. */
export function allowNames(
  object: Record<string, unknown>,
  names: readonly string[],
  what: string,
): void {
  const stranger = Object.keys(object).find((name) => !names.includes(name));
  if (stranger !== undefined) throw malformedPolicy(`${stranger} is not known in ${what}`);
}
