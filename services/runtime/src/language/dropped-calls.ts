// Calls whose result a statement drops: if it is a promise, nothing handles its error.
import type { BindingNode } from "./databases.ts";
import type { Candidate, SyntaxNode } from "./sql-template.ts";

/** A call in an expression statement. */
export interface DroppedCall {
  /** Offset of the call. */
  readonly start: number;
  /** Offset of the name that is called, which has the type of the function; undefined if the result is a promise. */
  readonly nameAt: number | undefined;
  /** Text such as `notes.run`. */
  readonly name: string;
  /** True for `void notes.run()`. */
  readonly isVoid: boolean;
}

/** The parts of expressions that are read. */
interface Expression extends Candidate {
  readonly expression?: Expression;
  readonly operator?: string;
  readonly argument?: Expression;
  readonly left?: Expression;
  readonly right?: Expression;
  readonly consequent?: Expression;
  readonly alternate?: Expression;
  readonly expressions?: readonly Expression[];
  readonly computed?: boolean;
  readonly async?: boolean;
}

/** An expression statement. */
export interface StatementNode extends SyntaxNode {
  readonly expression?: SyntaxNode;
}

/** Its functions return promises that the runner awaits. */
const TEST_RUNNER = "node:test";

/** Finds the calls, in the order of the file. Calls with `catch`, or with two functions for `then`, are not dropped. */
export function findDroppedCalls(
  source: string,
  statements: readonly StatementNode[],
  bindings: readonly BindingNode[],
): DroppedCall[] {
  const runners = new Set(bindings.flatMap(findRunnerNames));
  const found: DroppedCall[] = [];
  for (const { expression } of statements) {
    for (const { call, isVoid } of listCalls(expression, false)) {
      if (runners.has(findRoot(call)?.name ?? "")) continue;
      const named = findName(call, source);
      if (named !== undefined) found.push({ start: call.start, isVoid, ...named });
    }
  }
  return found.sort((a, b) => a.start - b.start);
}

interface Found {
  readonly call: Expression;
  readonly isVoid: boolean;
}

/** The calls whose results are the result of an expression. */
function listCalls(expression: Expression | undefined, isVoid: boolean): Found[] {
  switch (expression?.type) {
    case "UnaryExpression":
      return expression.operator === "void" ? listCalls(expression.argument, true) : [];
    case "LogicalExpression":
      return listCalls(expression.right, isVoid);
    case "ConditionalExpression":
      return [expression.consequent, expression.alternate].flatMap((one) => listCalls(one, isVoid));
    case "SequenceExpression":
      return (expression.expressions ?? []).flatMap((one) => listCalls(one, isVoid));
    case "ChainExpression":
    case "ParenthesizedExpression":
    case "TSNonNullExpression":
    case "TSAsExpression":
      return listCalls(expression.expression, isVoid);
    case "CallExpression":
      return findHandled(expression, isVoid);
    case "TaggedTemplateExpression":
    case "NewExpression":
      return [{ call: expression, isVoid }];
    default:
      return [];
  }
}

function findHandled(call: Expression, isVoid: boolean): Found[] {
  const { callee, arguments: values = [] } = call;
  const method = callee?.property?.name;
  if (method === "catch" && values.length > 0) return [];
  if (method === "then" && values.length > 1) return [];
  if (method === "finally") return listCalls(callee?.object, isVoid);
  return [{ call, isVoid }];
}

function findRoot({ callee, tag }: Expression): SyntaxNode | undefined {
  let node = callee ?? tag;
  while (node?.object !== undefined) node = node.object;
  return node;
}

function findName(
  { type, callee, tag }: Expression,
  source: string,
): { name: string; nameAt: number | undefined } | undefined {
  const called: Expression | undefined = callee ?? tag;
  if (called === undefined) return undefined;
  const isFunction = /Function/.test(called.type);
  if (isFunction && called.async === true) return { name: "this function", nameAt: undefined };
  if (type === "NewExpression") {
    return called.name === "Promise" ? { name: "new Promise", nameAt: undefined } : undefined;
  }
  const last = called.property ?? called;
  if (called.computed === true || last.name === undefined) return undefined;
  const text = source.slice(called.start, called.end);
  return { name: /^[\w$.]{1,60}$/.test(text) ? text : last.name, nameAt: last.start };
}

function findRunnerNames({ type, source, specifiers = [] }: BindingNode): string[] {
  if (type !== "ImportDeclaration" || source?.value !== TEST_RUNNER) return [];
  return specifiers.flatMap(({ local }) => local.name ?? []);
}

/** True if a description of a function, such as `(method) Queries.run(…): Promise<Changes>`, returns a promise. */
export function returnsPromise(description: string): boolean {
  const text = description.replace(/^\s*```\w*\n/, "").split("\n```", 1)[0]!;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    if (/[([{]/.test(text[at]!)) depth++;
    else if (/[)\]}]/.test(text[at]!)) depth--;
    if (depth > 0 || text[at] !== ")") continue;
    const result = /^\)(?:: | => )/.exec(text.slice(at, at + 5));
    if (result === null) continue;
    return /^(?:[\w.]+ \| )*Promise(?:Like)?</.test(text.slice(at + result[0].length));
  }
  return false;
}
