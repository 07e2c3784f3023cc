// Checks of gateway rules by the gateway's schema, as far as they are written out. Only checks and editors load the schema;
// a service checks its rules when it starts.
import { checkRules, RULE_FIELDS, type GatewayRules } from "@platform/kernel/route-rules";
import { DYNAMIC, findPlace, isDynamic, type Literal } from "./literal.ts";
import type { RulesText } from "./rules.ts";
import { findLineColumn, type SourceProblem } from "./source-problem.ts";

/** Returns the problems, in the order of the file. */
export function verifyRules({
  path,
  source,
  rules,
}: {
  readonly path: string;
  readonly source: string;
  readonly rules: readonly RulesText[];
}): SourceProblem[] {
  const all = rules.find(({ scope }) => scope === "all")?.literal;
  const base = all === undefined ? { fixed: {}, isPartial: false } : split(all);
  return rules.flatMap(({ scope, literal }) => {
    const inherited = scope === "all" ? undefined : base;
    return verify(literal, inherited).map(({ offset, message }): SourceProblem => ({
      path,
      ...findLineColumn(source, offset),
      severity: "error",
      message: `gateway: ${message}`,
    }));
  });
}

interface Split {
  /** The fields that are written out. */
  readonly fixed: Record<string, unknown>;
  /** True if there may be others. */
  readonly isPartial: boolean;
}

function split({ members }: Literal): Split {
  const entries = [...members];
  const fixed = entries.filter(([, { literal }]) => !isDynamic(literal));
  return {
    fixed: Object.fromEntries(fixed.map(([name, { literal }]) => [name, literal.value])),
    isPartial: fixed.length < entries.length,
  };
}

function verify(literal: Literal, base: Split | undefined): { offset: number; message: string }[] {
  if (literal.value === DYNAMIC) return [];
  const isObject = typeof literal.value === "object" && !Array.isArray(literal.value);
  const { fixed, isPartial } = split(literal);
  const isWhole = !isPartial && base?.isPartial !== true;
  const found = checkRules(isObject ? fixed : literal.value, base?.fixed as GatewayRules)
    // The field that it requires may be one that only the code tells.
    .filter(({ message }) => isWhole || !message.startsWith("requires "))
    .map(({ path, message }) => ({
      offset: findPlace(literal, path),
      message: [...path, message].join(" "),
    }));
  const unknown = [...literal.members].filter(
    ([name, { literal: member }]) =>
      isDynamic(member) && !name.startsWith("…") && !(RULE_FIELDS as string[]).includes(name),
  );
  const names = unknown.flatMap(([name, { keyAt }]) =>
    checkRules({ [name]: true }).map(({ message }) => ({
      offset: keyAt,
      message: `${name} ${message}`,
    })),
  );
  return [...found, ...names].sort((one, other) => one.offset - other.offset);
}
