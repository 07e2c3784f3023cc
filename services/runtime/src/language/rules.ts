// Gateway rules in a file: those of the declaration `gateway`, of clauses, and of calls of the package.
import type { BindingNode } from "./databases.ts";
import { findMember, readLiteral, type Literal } from "./literal.ts";
import type { Candidate, SyntaxNode } from "./sql-template.ts";

/** Rules as they are written. */
export interface RulesText {
  /** `all`: for all routes. */
  readonly scope: "all" | "route";
  readonly literal: Literal;
}

const PACKAGE = "@platform/service";

/** Finds the rules of a plain file's calls: `gateway({ … })`, `route("GET", "/", { gateway: { … } }, …)`. */
export function findCalledRules(
  candidates: readonly Candidate[],
  bindings: readonly BindingNode[],
): RulesText[] {
  const gateways = findLocalNames(bindings, "gateway");
  const routes = findLocalNames(bindings, "route");
  return candidates.flatMap(({ type, callee, arguments: values = [] }): RulesText[] => {
    if (type !== "CallExpression" || callee?.name === undefined) return [];
    if (gateways.has(callee.name) && values[0] !== undefined) {
      return [{ scope: "all", literal: readLiteral(values[0]) }];
    }
    if (!routes.has(callee.name) || values[2]?.type !== "ObjectExpression") return [];
    const literal = findMember(readLiteral(values[2]), "gateway");
    return literal === undefined ? [] : [{ scope: "route", literal }];
  });
}

/** The rules of a declaration or a clause. */
export function readRules(scope: RulesText["scope"], node: SyntaxNode): RulesText {
  return { scope, literal: readLiteral(node) };
}

function findLocalNames(bindings: readonly BindingNode[], name: string): ReadonlySet<string> {
  const names = bindings.flatMap(({ type, source, specifiers = [] }) => {
    if (type !== "ImportDeclaration" || source?.value !== PACKAGE) return [];
    return specifiers.flatMap(({ local, imported }) =>
      imported?.name === name && local.name !== undefined ? [local.name] : [],
    );
  });
  return new Set(names);
}
