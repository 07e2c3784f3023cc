// Policy variables: `${aws:username}` and `${aws:username, 'default'}` in resources and in text conditions.
import { findConditionKey, type ConditionValues } from "./condition-keys.ts";
import { malformedPolicy } from "./malformed.ts";
import { escapeWildcards } from "./wildcard.ts";

const VARIABLE = /\$\{([^}]{0,256})\}/g;
const WITH_DEFAULT = /^\s*([^,]+?)\s*(?:,\s*'([^']*)'\s*)?$/;
const LITERALS: ReadonlySet<string> = new Set(["*", "?", "$"]);
/** Matches no text. */
const NOTHING = "\u0000";

/** Rules for the texts of a policy: older versions have no variables, so `${` stands for itself there. */
export interface TextRules {
  readonly hasVariables: boolean;
}

/** True if a text has variables. */
function hasVariable(text: string, { hasVariables }: TextRules): boolean {
  return hasVariables && text.includes("${");
}

/** The condition keys of a text's variables. Throws MalformedPolicy for unknown variables. */
export function listVariables(text: string, rules: TextRules): string[] {
  if (!hasVariable(text, rules)) return [];
  return [...text.matchAll(VARIABLE)].flatMap(([, inner]) => {
    const variable = readVariable(inner!);
    return typeof variable === "string" ? [] : [variable.key];
  });
}

/**
 * Prepares a text with variables for a comparison or as a pattern. A variable without a value and without a default becomes
 * a text that matches nothing. Throws MalformedPolicy for unknown variables.
 */
export function expandVariables(
  text: string,
  rules: TextRules,
  kind: "pattern" | "plain",
): (values: ConditionValues) => string {
  if (!hasVariable(text, rules)) return () => text;
  // Plain text and variables alternate.
  const parts = text.split(VARIABLE).map((part, at) => (at % 2 === 0 ? part : readVariable(part)));
  const write = kind === "pattern" ? escapeWildcards : (value: string) => value;
  return (values) => parts.map((part, at) => expandPart(part, at, values, write)).join("");
}

interface Variable {
  key: string;
  byDefault: string | undefined;
}

// A literal character that is written as a variable, or the key of a variable.
function readVariable(inner: string): string | Variable {
  if (LITERALS.has(inner)) return inner;
  const match = WITH_DEFAULT.exec(inner);
  const key = match === null ? undefined : findConditionKey(match[1]!);
  if (key === undefined) throw malformedPolicy(`the variable \${${inner}} is unknown`);
  return { key, byDefault: match![2] };
}

// The text of a policy may be a pattern; the value of a variable is always plain text.
function expandPart(
  part: string | Variable,
  at: number,
  values: ConditionValues,
  write: (value: string) => string,
): string {
  if (typeof part === "string") return at % 2 === 0 ? part : write(part);
  return write(values.get(part.key)?.[0] ?? part.byDefault ?? NOTHING);
}
