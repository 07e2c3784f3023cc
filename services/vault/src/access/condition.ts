// Conditions of policies. They are compiled when a policy is put; anything unknown is refused.
import { AddressSet, isNetwork } from "@platform/kernel/network";
import { type ConditionValues, readConditionKey } from "./condition-keys.ts";
import { malformedPolicy } from "./malformed.ts";
import { expandVariables, listVariables, type TextRules } from "./variable.ts";
import { matchesWildcard } from "./wildcard.ts";

/** A compiled condition. */
export interface Condition {
  /** The keys that it uses: its own, and those of variables in its values. */
  readonly keys: readonly string[];
  readonly holds: (values: ConditionValues) => boolean;
}

const VALUES_MAX = 200;

type Test = (given: string, values: ConditionValues) => boolean;

interface Operator {
  negated: boolean;
  /** Compiles the test of one expected value. Throws MalformedPolicy for a value of the wrong kind. */
  compile: (expected: string, rules: TextRules) => Test;
}

const OPERATORS: Readonly<Record<string, Operator>> = {
  stringequals: { negated: false, compile: compareText((a, b) => a === b) },
  stringnotequals: { negated: true, compile: compareText((a, b) => a === b) },
  stringequalsignorecase: { negated: false, compile: compareText(isSameIgnoringCase) },
  stringnotequalsignorecase: { negated: true, compile: compareText(isSameIgnoringCase) },
  stringlike: { negated: false, compile: comparePattern() },
  stringnotlike: { negated: true, compile: comparePattern() },
  arnequals: { negated: false, compile: comparePattern() },
  arnlike: { negated: false, compile: comparePattern() },
  arnnotequals: { negated: true, compile: comparePattern() },
  arnnotlike: { negated: true, compile: comparePattern() },
  numericequals: { negated: false, compile: compareNumber((a, b) => a === b) },
  numericnotequals: { negated: true, compile: compareNumber((a, b) => a === b) },
  numericlessthan: { negated: false, compile: compareNumber((a, b) => a < b) },
  numericlessthanequals: { negated: false, compile: compareNumber((a, b) => a <= b) },
  numericgreaterthan: { negated: false, compile: compareNumber((a, b) => a > b) },
  numericgreaterthanequals: { negated: false, compile: compareNumber((a, b) => a >= b) },
  dateequals: { negated: false, compile: compareDate((a, b) => a === b) },
  datenotequals: { negated: true, compile: compareDate((a, b) => a === b) },
  datelessthan: { negated: false, compile: compareDate((a, b) => a < b) },
  datelessthanequals: { negated: false, compile: compareDate((a, b) => a <= b) },
  dategreaterthan: { negated: false, compile: compareDate((a, b) => a > b) },
  dategreaterthanequals: { negated: false, compile: compareDate((a, b) => a >= b) },
  bool: { negated: false, compile: compileBool },
  ipaddress: { negated: false, compile: compileAddress },
  notipaddress: { negated: true, compile: compileAddress },
};

/** A compiled Condition block. */
export interface CompiledConditions {
  readonly conditions: readonly Condition[];
  /** The keys that it uses. */
  readonly keys: readonly string[];
  /** True if only callers with fixed names or addresses meet it ("The meaning of public"). */
  readonly isNarrow: boolean;
}

/** Compiles a Condition block. Throws MalformedPolicy for unknown operators and keys and for invalid values. */
export function compileConditions(block: unknown, rules: TextRules): CompiledConditions {
  if (typeof block !== "object" || block === null || Array.isArray(block)) {
    throw malformedPolicy("Condition must be an object");
  }
  const conditions: Condition[] = [];
  const keys: string[] = [];
  let isNarrow = false;
  for (const [operator, entries] of Object.entries(block)) {
    if (typeof entries !== "object" || entries === null || Array.isArray(entries)) {
      throw malformedPolicy(`the condition ${operator} must be an object`);
    }
    for (const [key, expected] of Object.entries(entries as Record<string, unknown>)) {
      const name = readConditionKey(key);
      const values = readValues(expected);
      keys.push(name);
      conditions.push({
        keys: [name, ...values.flatMap((value) => listVariables(value, rules))],
        holds: compileCondition(operator, name, values, rules),
      });
      isNarrow ||= isNarrowing(operator, name, values);
    }
  }
  return { conditions, keys, isNarrow };
}

function compileCondition(
  text: string,
  key: string,
  expected: string[],
  rules: TextRules,
): Condition["holds"] {
  const match = /^(?:(ForAllValues|ForAnyValue):)?([A-Za-z]+?)(IfExists)?$/i.exec(text);
  const name = match?.[2]?.toLowerCase() ?? "";
  const quantifier = match?.[1]?.toLowerCase();
  const ifExists = match?.[3] !== undefined;
  if (name === "null" && quantifier === undefined && !ifExists) return compileNull(key, expected);
  const operator = Object.hasOwn(OPERATORS, name) ? OPERATORS[name]! : undefined;
  if (operator === undefined) throw malformedPolicy(`the condition operator ${text} is unknown`);
  const tests = expected.map((value) => operator.compile(value, rules));
  const { negated } = operator;
  const holds = (given: string, values: ConditionValues): boolean =>
    tests.some((test) => test(given, values)) !== negated;
  return (values) => {
    const given = values.get(key);
    if (given === undefined || given.length === 0) {
      return ifExists || quantifier === "forallvalues" || (negated && quantifier === undefined);
    }
    return quantifier === "forallvalues"
      ? given.every((value) => holds(value, values))
      : given.some((value) => holds(value, values));
  };
}

function compileNull(key: string, expected: string[]): Condition["holds"] {
  const wanted = expected.map((value) => {
    if (!/^(?:true|false)$/i.test(value)) throw malformedPolicy("Null must be true or false");
    return value.toLowerCase() === "true";
  });
  return (values) => wanted.includes(!values.has(key));
}

function compareText(compare: (given: string, expected: string) => boolean) {
  return (expected: string, rules: TextRules): Test => {
    const expand = expandVariables(expected, rules, "plain");
    return (given, values) => compare(given, expand(values));
  };
}

function comparePattern() {
  return (expected: string, rules: TextRules): Test => {
    const expand = expandVariables(expected, rules, "pattern");
    return (given, values) => matchesWildcard(expand(values), given);
  };
}

function isSameIgnoringCase(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

function compareNumber(compare: (given: number, expected: number) => boolean) {
  return (text: string): Test => {
    const expected = Number(text);
    if (text.trim() === "" || Number.isNaN(expected))
      throw malformedPolicy(`${text} is not a number`);
    return (given) => compare(Number(given), expected);
  };
}

function compareDate(compare: (given: number, expected: number) => boolean) {
  return (text: string): Test => {
    const expected = readTime(text);
    if (Number.isNaN(expected)) throw malformedPolicy(`${text} is not a time`);
    return (given) => compare(readTime(given), expected);
  };
}

function readTime(text: string): number {
  return /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text);
}

function compileBool(text: string): Test {
  if (!/^(?:true|false)$/i.test(text)) throw malformedPolicy(`${text} must be true or false`);
  const expected = text.toLowerCase();
  return (given) => given.toLowerCase() === expected;
}

function compileAddress(text: string): Test {
  if (!isNetwork(text)) throw malformedPolicy(`${text} is not an address or a range of addresses`);
  const network = new AddressSet([text]);
  return (given) => network.has(given);
}

function readValues(value: unknown): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length === 0 || list.length > VALUES_MAX)
    throw malformedPolicy("a condition has no values, or too many");
  return list.map((item) => {
    if (typeof item === "string") return item;
    if (typeof item === "number" || typeof item === "boolean") return String(item);
    throw malformedPolicy("a condition's value must be a string");
  });
}

/** Keys that identify the caller and cannot be forged. */
const CALLER_KEYS: ReadonlySet<string> = new Set([
  "aws:principalaccount",
  "aws:principalarn",
  "aws:principalorgid",
  "aws:sourceaccount",
  "aws:sourcearn",
  "aws:sourcevpc",
  "aws:sourcevpce",
  "aws:userid",
  "aws:username",
  "s3:dataaccesspointaccount",
  "s3:dataaccesspointarn",
]);
const FIXED_OPERATOR =
  /^(?:ForAnyValue:)?(?:StringEquals|StringEqualsIgnoreCase|StringLike|Arn(?:Equals|Like))$/i;
/** Broader ranges than these are as good as public. */
const PREFIX_BITS_MIN = { 4: 8, 6: 32 } as const;

function isNarrowing(operator: string, key: string, expected: readonly string[]): boolean {
  if (key === "aws:sourceip") {
    // Each request has an address, so IfExists has no effect.
    return /^(?:ForAnyValue:)?IpAddress(?:IfExists)?$/i.test(operator) && expected.every(isSmall);
  }
  const isFixed = (value: string): boolean => !/[*?]|\$\{/.test(value);
  return CALLER_KEYS.has(key) && FIXED_OPERATOR.test(operator) && expected.every(isFixed);
}

function isSmall(network: string): boolean {
  const [address = "", length] = network.split("/");
  return length === undefined || Number(length) >= PREFIX_BITS_MIN[address.includes(":") ? 6 : 4];
}
