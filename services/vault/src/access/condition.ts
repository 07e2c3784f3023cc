// Conditions of policies: compiled when a policy is put, refused there where anything about them is not known.
import { AddressSet, isNetwork } from "@platform/kernel/network";
import { malformedPolicy } from "./malformed.ts";
import { expandVariables } from "./variable.ts";
import { matchesWildcard } from "./wildcard.ts";

/** The values of a request's condition keys, names in lower case; a key that does not apply is not there. */
export type ConditionValues = ReadonlyMap<string, readonly string[]>;

/** A condition that is ready to be asked. */
export type Condition = (values: ConditionValues) => boolean;

/** Keys whose whole name is known, in lower case. */
const KEYS: ReadonlySet<string> = new Set([
  "aws:currenttime",
  "aws:epochtime",
  "aws:principalaccount",
  "aws:principalarn",
  "aws:principaltype",
  "aws:referer",
  "aws:securetransport",
  "aws:sourceip",
  "aws:useragent",
  "aws:userid",
  "aws:username",
  "s3:authtype",
  "s3:delimiter",
  "s3:if-match",
  "s3:if-none-match",
  "s3:max-keys",
  "s3:object-lock-legal-hold",
  "s3:object-lock-mode",
  "s3:object-lock-retain-until-date",
  "s3:prefix",
  "s3:requestobjecttagkeys",
  "s3:signatureage",
  "s3:signatureversion",
  "s3:versionid",
  "s3:x-amz-acl",
  "s3:x-amz-content-sha256",
  "s3:x-amz-copy-source",
  "s3:x-amz-grant-full-control",
  "s3:x-amz-grant-read",
  "s3:x-amz-grant-read-acp",
  "s3:x-amz-grant-write",
  "s3:x-amz-grant-write-acp",
  "s3:x-amz-metadata-directive",
  "s3:x-amz-server-side-encryption",
  "s3:x-amz-server-side-encryption-aws-kms-key-id",
  "s3:x-amz-server-side-encryption-customer-algorithm",
  "s3:x-amz-storage-class",
  "s3:x-amz-website-redirect-location",
]);
/** Keys that a tag's name follows. */
const KEY_FAMILIES = ["s3:existingobjecttag/", "s3:requestobjecttag/"];
const VALUES_MAX = 200;

type Test = (given: string, values: ConditionValues) => boolean;

interface Operator {
  negated: boolean;
  /** Makes the test of one expected value; throws MalformedPolicy for a value that is none of its kind. */
  compile: (expected: string) => Test;
}

const OPERATORS: Readonly<Record<string, Operator>> = {
  stringequals: { negated: false, compile: compareText((a, b) => a === b) },
  stringnotequals: { negated: true, compile: compareText((a, b) => a === b) },
  stringequalsignorecase: { negated: false, compile: compareText(isSameIgnoringCase) },
  stringnotequalsignorecase: { negated: true, compile: compareText(isSameIgnoringCase) },
  stringlike: { negated: false, compile: compareText((a, b) => matchesWildcard(b, a)) },
  stringnotlike: { negated: true, compile: compareText((a, b) => matchesWildcard(b, a)) },
  arnequals: { negated: false, compile: compareText((a, b) => matchesWildcard(b, a)) },
  arnlike: { negated: false, compile: compareText((a, b) => matchesWildcard(b, a)) },
  arnnotequals: { negated: true, compile: compareText((a, b) => matchesWildcard(b, a)) },
  arnnotlike: { negated: true, compile: compareText((a, b) => matchesWildcard(b, a)) },
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

/** Compiles a Condition block. Throws MalformedPolicy for operators, keys and values that are not known. */
export function compileConditions(block: unknown): { conditions: Condition[]; keys: string[] } {
  if (typeof block !== "object" || block === null || Array.isArray(block)) {
    throw malformedPolicy("Condition must be an object");
  }
  const conditions: Condition[] = [];
  const keys: string[] = [];
  for (const [operator, entries] of Object.entries(block)) {
    if (typeof entries !== "object" || entries === null || Array.isArray(entries)) {
      throw malformedPolicy(`the condition ${operator} must be an object`);
    }
    for (const [key, expected] of Object.entries(entries as Record<string, unknown>)) {
      const name = checkKey(key);
      keys.push(name);
      conditions.push(compileCondition(operator, name, readValues(expected)));
    }
  }
  return { conditions, keys };
}

function compileCondition(text: string, key: string, expected: string[]): Condition {
  const match = /^(?:(ForAllValues|ForAnyValue):)?([A-Za-z]+?)(IfExists)?$/i.exec(text);
  const name = match?.[2]?.toLowerCase() ?? "";
  const quantifier = match?.[1]?.toLowerCase();
  const ifExists = match?.[3] !== undefined;
  if (name === "null" && quantifier === undefined && !ifExists) return compileNull(key, expected);
  const operator = Object.hasOwn(OPERATORS, name) ? OPERATORS[name]! : undefined;
  if (operator === undefined) throw malformedPolicy(`the condition operator ${text} is not known`);
  const tests = expected.map(operator.compile);
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

function compileNull(key: string, expected: string[]): Condition {
  const wanted = expected.map((value) => {
    if (!/^(?:true|false)$/i.test(value)) throw malformedPolicy("Null takes true or false");
    return value.toLowerCase() === "true";
  });
  return (values) => wanted.includes(!values.has(key));
}

function compareText(compare: (given: string, expected: string) => boolean) {
  return (expected: string): Test => {
    const expand = expandVariables(expected);
    return (given, values) => compare(given, expand(values));
  };
}

function isSameIgnoringCase(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

function compareNumber(compare: (given: number, expected: number) => boolean) {
  return (text: string): Test => {
    const expected = Number(text);
    if (text.trim() === "" || Number.isNaN(expected)) throw malformedPolicy(`${text} is no number`);
    return (given) => compare(Number(given), expected);
  };
}

function compareDate(compare: (given: number, expected: number) => boolean) {
  return (text: string): Test => {
    const expected = readTime(text);
    if (Number.isNaN(expected)) throw malformedPolicy(`${text} is no time`);
    return (given) => compare(readTime(given), expected);
  };
}

function readTime(text: string): number {
  return /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text);
}

function compileBool(text: string): Test {
  if (!/^(?:true|false)$/i.test(text)) throw malformedPolicy(`${text} is neither true nor false`);
  const expected = text.toLowerCase();
  return (given) => given.toLowerCase() === expected;
}

function compileAddress(text: string): Test {
  if (!isNetwork(text)) throw malformedPolicy(`${text} is no address or range of addresses`);
  const network = new AddressSet([text]);
  return (given) => network.has(given);
}

function checkKey(key: string): string {
  const name = foldKey(key);
  const isFamily = KEY_FAMILIES.some(
    (family) => name.toLowerCase().startsWith(family) && name.length > family.length,
  );
  if (!isFamily && !KEYS.has(name.toLowerCase())) {
    throw malformedPolicy(`the condition key ${key} is not known`);
  }
  // The name of a tag keeps its case.
  if (!isFamily) return name.toLowerCase();
  const slash = name.indexOf("/");
  return name.slice(0, slash).toLowerCase() + name.slice(slash);
}

function foldKey(key: string): string {
  return key
    .replace(/^objstore:/i, "s3:")
    .replace(/^s3:x-store-/i, "s3:x-amz-")
    .replace(/^store:/i, "aws:");
}

function readValues(value: unknown): string[] {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length === 0 || list.length > VALUES_MAX)
    throw malformedPolicy("a condition has no values, or too many");
  return list.map((item) => {
    if (typeof item === "string") return item;
    if (typeof item === "number" || typeof item === "boolean") return String(item);
    throw malformedPolicy("a condition's value is no text");
  });
}
