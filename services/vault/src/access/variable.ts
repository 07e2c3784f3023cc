// Variables of policies: `${aws:username}` and `${aws:username, 'default'}` in resources and in conditions on text.
import { findConditionKey, type ConditionValues } from "./condition-keys.ts";
import { malformedPolicy } from "./malformed.ts";
import { escapeWildcards } from "./wildcard.ts";

const VARIABLE = /\$\{([^}]{0,256})\}/g;
const WITH_DEFAULT = /^\s*([^,]+?)\s*(?:,\s*'([^']*)'\s*)?$/;
const LITERALS: ReadonlySet<string> = new Set(["*", "?", "$"]);
/** What no text matches. */
const NOTHING = "\u0000";

/** How a policy's texts are read: those of older versions have no variables, what looks like one stands for itself. */
export interface TextRules {
  readonly hasVariables: boolean;
}

/** Whether a text has variables. */
export function hasVariable(text: string, { hasVariables }: TextRules): boolean {
  return hasVariables && text.includes("${");
}

/**
 * Prepares a text with variables, for a comparison or as a pattern. A variable that has neither a value for a request
 * nor a default becomes a text that nothing matches. Throws MalformedPolicy for variables that are not known.
 */
export function expandVariables(
  text: string,
  rules: TextRules,
  kind: "pattern" | "plain",
): (values: ConditionValues) => string {
  if (!hasVariable(text, rules)) return () => text;
  // Texts and what stands between their braces take turns.
  const parts = text.split(VARIABLE).map((part, at) => (at % 2 === 0 ? part : readVariable(part)));
  const write = kind === "pattern" ? escapeWildcards : (value: string) => value;
  return (values) => parts.map((part, at) => expandPart(part, at, values, write)).join("");
}

interface Variable {
  key: string;
  byDefault: string | undefined;
}

// A character that is written as a variable, or the key of one.
function readVariable(inner: string): string | Variable {
  if (LITERALS.has(inner)) return inner;
  const match = WITH_DEFAULT.exec(inner);
  const key = match === null ? undefined : findConditionKey(match[1]!);
  if (key === undefined) throw malformedPolicy(`the variable \${${inner}} is not known`);
  return { key, byDefault: match![2] };
}

// What stands in a policy may be a pattern; what a variable stands for is a text.
function expandPart(
  part: string | Variable,
  at: number,
  values: ConditionValues,
  write: (value: string) => string,
): string {
  if (typeof part === "string") return at % 2 === 0 ? part : write(part);
  return write(values.get(part.key)?.[0] ?? part.byDefault ?? NOTHING);
}
