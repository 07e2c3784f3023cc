// Variables of policies: `${aws:username}` in resources and in conditions on text.
import type { ConditionValues } from "./condition.ts";
import { malformedPolicy } from "./malformed.ts";

const VARIABLE = /\$\{([^}]{0,128})\}/g;
const VARIABLES: ReadonlySet<string> = new Set(["aws:username", "aws:userid", "aws:sourceip"]);
const LITERALS: ReadonlySet<string> = new Set(["*", "?", "$"]);

/**
 * Prepares a text with variables. A variable that has no value for a request becomes a text that nothing matches.
 * Throws MalformedPolicy for variables that are not known.
 */
export function expandVariables(text: string): (values: ConditionValues) => string {
  if (!text.includes("${")) return () => text;
  for (const [, name] of text.matchAll(VARIABLE)) {
    if (!VARIABLES.has(fold(name!)) && !LITERALS.has(name!)) {
      throw malformedPolicy(`the variable \${${name}} is not known`);
    }
  }
  return (values) =>
    text.replaceAll(VARIABLE, (_whole, name: string) => {
      if (LITERALS.has(name)) return name;
      // What came from a caller must not work as a pattern.
      return values.get(fold(name))?.[0]?.replaceAll(/[*?]/g, "\u0000") ?? "\u0000";
    });
}

function fold(name: string): string {
  return name.toLowerCase().replace(/^store:/, "aws:");
}
