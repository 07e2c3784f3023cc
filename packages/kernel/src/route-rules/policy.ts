// Policies: the lines of the policy language, and the same rules as JSON.
import { z } from "zod";
import { normalizePrefix } from "./value.ts";

const RULES_MAX = 1_000;
const TEXT_CHARACTERS_MAX = 65_536;
const PATTERN_CHARACTERS_MAX = 1_024;
/** Each `*` costs a search of the path. */
const WILDCARDS_MAX = 16;
const VALUE_CHARACTERS_MAX = 1_024;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/;
const METHOD = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/;

/** One rule of a policy. All given conditions must hold. */
export interface PolicyRule {
  effect: "allow" | "deny";
  /** Upper-case methods; absent: any method. */
  methods?: readonly string[];
  /** Pattern of the normalized path in which `*` matches any characters; absent: any path. */
  path?: string;
  /** Condition on a request header; its name is in lower case. */
  header?: { name: string; equals: string };
}

/** A condition on the place of the gateway, which is known when the policy is read. */
export interface PolicyPlace {
  cluster: string;
  region: string;
}

interface PlaceCondition {
  name: keyof PolicyPlace;
  equals: string;
}

/** A rule as written: with a condition on the place. */
export interface ParsedRule {
  rule: PolicyRule;
  place?: PlaceCondition;
}

const ruleSchema = z
  .strictObject({
    effect: z.enum(["allow", "deny"]),
    methods: z
      .array(z.string().regex(METHOD, { error: "expected a method or *" }))
      .max(32)
      .optional(),
    path: z.string().max(PATTERN_CHARACTERS_MAX).optional(),
    when: z
      .strictObject({
        header: z.string().regex(TOKEN, { error: "expected the name of a header" }),
        equals: z.string().max(VALUE_CHARACTERS_MAX),
      })
      .optional(),
  })
  .superRefine((rule, context) => {
    const message = rule.path === undefined ? undefined : findPatternFault(rule.path);
    if (message !== undefined) context.addIssue({ code: "custom", path: ["path"], message });
  })
  .transform(({ effect, methods, path, when }): PolicyRule =>
    makeRule({ effect, methods, path, header: when && { name: when.header, equals: when.equals } }),
  );

/** The body of a policy reload. */
export const policyReloadSchema = z.strictObject({
  version: z.int().min(1).max(Number.MAX_SAFE_INTEGER).optional(),
  allow_lower_version: z.boolean().optional(),
  default: z.enum(["allow", "deny"]).optional(),
  rules: z.array(ruleSchema).max(RULES_MAX).optional(),
});

/** The field `policy` of a route: lines of the policy language. */
export function policyLines() {
  return z
    .string()
    .max(TEXT_CHARACTERS_MAX)
    .superRefine((text, context) => {
      for (const message of readLines(text).faults) context.addIssue({ code: "custom", message });
    });
}

/** The rules of a validated policy that can apply at `place`. */
export function readPolicy(text: string, place: PolicyPlace): PolicyRule[] {
  return readLines(text).rules.flatMap(({ rule, place: condition }) =>
    condition === undefined || place[condition.name] === condition.equals ? [rule] : [],
  );
}

function readLines(text: string): { rules: ParsedRule[]; faults: string[] } {
  const { rules, faults } = readPolicyText(text);
  const messages = faults.map(({ line, message }) => `line ${line}: ${message}`);
  if (rules.length > RULES_MAX) messages.push(`expected at most ${RULES_MAX} rules`);
  return { rules, faults: messages };
}

/** A fault of a policy. Lines and columns start at 1. */
export interface PolicyFault {
  line: number;
  column: number;
  message: string;
}

/** Reads all lines of a policy, with the faults of those that are wrong. */
export function readPolicyText(text: string): { rules: ParsedRule[]; faults: PolicyFault[] } {
  const rules: ParsedRule[] = [];
  const faults: PolicyFault[] = [];
  for (const [index, raw] of text.split("\n").entries()) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) continue;
    const rule = readLine(line);
    if (typeof rule !== "string") {
      rules.push(rule);
      continue;
    }
    const column = raw.indexOf(line) + findFaultyWord(line, rule) + 1;
    faults.push({ line: index + 1, column, message: rule });
  }
  return { rules, faults };
}

// Offset of the first word that makes the line wrong: of the words before it, the line is right.
function findFaultyWord(line: string, fault: string): number {
  const words = [...line.matchAll(/[^ \t]+/g)];
  const [, method, path, condition] = words.map(({ index }) => index);
  if (fault.startsWith('expected "allow"')) return 0;
  if (fault.includes("method or *")) return method ?? line.length;
  if (condition !== undefined && readLine(line.slice(0, condition).trim()) !== fault)
    return condition;
  return path ?? line.length;
}

/** Reads `allow|deny METHOD PATH [if NAME == VALUE]`; returns the fault of a wrong line. */
function readLine(line: string): ParsedRule | string {
  const [effect, method, path, ...condition] = line.split(/[ \t]+/);
  if (effect !== "allow" && effect !== "deny") return 'expected "allow" or "deny" first';
  if (method === undefined || !METHOD.test(method)) return "expected a method or * after it";
  if (path === undefined) return "expected a path pattern or * after the method";
  const fault = findPatternFault(path);
  if (fault !== undefined) return fault;
  const base = { effect, methods: [method], path } as const;
  if (condition.length === 0) return { rule: makeRule(base) };
  return readCondition(base, line.slice(line.indexOf(condition[0]!, findPathEnd(line, path))));
}

function findPathEnd(line: string, path: string): number {
  return line.indexOf(path, line.search(/[ \t]/)) + path.length;
}

function readCondition(base: RuleParts, text: string): ParsedRule | string {
  const match = /^if[ \t]+([^ \t]+)[ \t]*==[ \t]*(.*)$/.exec(text);
  if (match === null) return "expected: if header.<name> == <value>";
  const [, name = "", given = ""] = match;
  const equals = unquote(given);
  if (equals.length > VALUE_CHARACTERS_MAX) return "the value is too long";
  if (name === "cluster" || name === "region") {
    return { rule: makeRule(base), place: { name, equals } };
  }
  const header = name.startsWith("header.") ? name.slice("header.".length) : "";
  if (!TOKEN.test(header)) return "expected header.<name>, cluster or region after if";
  return { rule: makeRule({ ...base, header: { name: header, equals } }) };
}

function unquote(value: string): string {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"')
    ? value.slice(1, -1)
    : value;
}

interface RuleParts {
  effect: "allow" | "deny";
  methods?: readonly string[] | undefined;
  path?: string | undefined;
  header?: { name: string; equals: string } | undefined;
}

function makeRule({ effect, methods, path, header }: RuleParts): PolicyRule {
  const isAnyMethod = methods === undefined || methods.length === 0 || methods.includes("*");
  const isAnyPath = path === undefined || path === "" || path === "*";
  return {
    effect,
    ...(isAnyMethod ? {} : { methods: methods.map((method) => method.toUpperCase()) }),
    ...(isAnyPath ? {} : { path: normalizePrefix(path) }),
    ...(header === undefined
      ? {}
      : { header: { name: header.name.toLowerCase(), equals: header.equals } }),
  };
}

function findPatternFault(pattern: string): string | undefined {
  if (pattern === "" || pattern === "*") return undefined;
  if (!/^[/*]/.test(pattern)) return 'expected a path pattern that starts with "/" or "*"';
  if (pattern.length > PATTERN_CHARACTERS_MAX) return "the path pattern is too long";
  if (pattern.split("*").length > WILDCARDS_MAX + 1) return `expected at most ${WILDCARDS_MAX} "*"`;
  return undefined;
}
