// Policies of buckets and users in AWS's JSON form, compiled once and evaluated for each request.
import type { ConditionValues } from "./condition-keys.ts";
import { compileConditions, type CompiledConditions, type Condition } from "./condition.ts";
import { checkPart, type PathSegment } from "../model/s3-error.ts";
import { malformedPolicy } from "./malformed.ts";
import { allowNames, asObject, pickOne, readTexts } from "./policy-document.ts";
import { compilePrincipal, type PolicyPrincipal } from "./principal.ts";
import { type ActionLevel, S3_ACTIONS } from "./s3-actions.ts";
import { expandVariables, listVariables, type TextRules } from "./variable.ts";
import { matchesBeginning, matchesWildcard } from "./wildcard.ts";

const POLICY_BYTES_MAX = 20_480;
const STATEMENTS_MAX = 100;
/** The policy version that has variables. */
const VERSION_NOW = "2012-10-17";
const VERSIONS: ReadonlySet<unknown> = new Set([VERSION_NOW, "2008-10-17", undefined]);
const NO_CONDITIONS: CompiledConditions = { conditions: [], keys: [], isNarrow: false };

/** The beginning of the names of named keys among resources; no bucket has this name. */
const KEY_RESOURCES = "kms:key";

/** Parts of a question that the body of its request will decide. */
export interface UnknownParts {
  /** The resource: a bucket of any name, or any key in the bucket. */
  readonly resource?: "bucket" | "key";
  /** Beginnings of the names of condition keys. */
  readonly values: readonly string[];
}

/** The input of a policy. */
export interface PolicyQuestion {
  principal: PolicyPrincipal;
  /** `s3:GetObject` */
  action: string;
  /** `bucket` or `bucket/key`. */
  resource: string;
  values: ConditionValues;
  /** Parts without a value yet. With an unknown key, `resource` is the bucket. */
  unknown?: UnknownParts | undefined;
}

/** The result of a policy. A deny is explicit and wins over everything. */
export type PolicyAnswer = "allow" | "deny" | "none";

interface Statement {
  effect: "allow" | "deny";
  matchesPrincipal: (principal: PolicyPrincipal) => boolean;
  /** The statement applies to everyone, without a condition that restricts it. */
  isPublic: boolean;
  matchesAction: (action: string) => boolean;
  resources: CompiledResources;
  conditions: readonly Condition[];
  /** True if it uses values of the request, in conditions or variables. */
  usesValues: boolean;
}

interface CompiledResources {
  matches: (resource: string, values: ConditionValues) => boolean;
  /** As `matches`, for a question with unknown parts. */
  match: (question: PolicyQuestion, unknown: UnknownParts) => Match;
  usesValues: boolean;
}

/** A comparison with something unknown: `maybe` depends on it. */
type Match = "yes" | "maybe" | "no";

/** A compiled policy. */
export class Policy {
  readonly #statements: readonly Statement[];
  /** True if it uses the tags of existing objects, which must be looked up first. */
  readonly usesExistingTags: boolean;
  /** True if it uses more of a request than its caller, action and resource. */
  readonly usesValues: boolean;

  constructor(statements: readonly Statement[], usesExistingTags: boolean) {
    this.#statements = statements;
    this.usesExistingTags = usesExistingTags;
    this.usesValues = statements.some((statement) => statement.usesValues);
  }

  /** True if it allows everyone something, apart from conditions on fixed values ("The meaning of public"). */
  get isPublic(): boolean {
    return this.#statements.some(({ effect, isPublic }) => effect === "allow" && isPublic);
  }

  /**
   * The answer to a question. With unknown parts, `allow` means that the policy may allow it, and `deny` that it denies it
   * in any case.
   */
  ask(question: PolicyQuestion): PolicyAnswer {
    let answer: PolicyAnswer = "none";
    for (const statement of this.#statements) {
      const match = matchStatement(statement, question);
      if (match === "no") continue;
      if (statement.effect === "allow") answer = "allow";
      else if (match === "yes") return "deny";
    }
    return answer;
  }
}

function matchStatement(statement: Statement, question: PolicyQuestion): Match {
  const { action, resource, principal, values, unknown } = question;
  if (!statement.matchesAction(action) || !statement.matchesPrincipal(principal)) return "no";
  const { resources, conditions } = statement;
  if (unknown === undefined) {
    const isMatch =
      resources.matches(resource, values) && conditions.every(({ holds }) => holds(values));
    return isMatch ? "yes" : "no";
  }
  let match = resources.match(question, unknown);
  for (const { keys, holds } of conditions) {
    if (match === "no") break;
    if (keys.some((key) => isUnknown(key, unknown))) match = "maybe";
    else if (!holds(values)) match = "no";
  }
  return match;
}

function isUnknown(key: string, { values }: UnknownParts): boolean {
  return values.some((beginning) => key.startsWith(beginning));
}

/**
 * Compiles the policy of `bucket`, or the policy of a user if `bucket` is undefined. Unknown elements are refused with
 * MalformedPolicy, never ignored.
 */
export function compilePolicy(document: unknown, bucket: string | undefined): Policy {
  const policy = asObject(document, "the policy");
  if (JSON.stringify(policy).length > POLICY_BYTES_MAX) throw malformedPolicy("it exceeds 20 KiB");
  allowNames(policy, ["Version", "Id", "Statement"], "the policy");
  if (!VERSIONS.has(policy["Version"]))
    throw malformedPolicy("its Version is not known", ["Version"]);
  const rules = { hasVariables: policy["Version"] === VERSION_NOW };
  const list = Array.isArray(policy["Statement"]) ? policy["Statement"] : [policy["Statement"]];
  if (list.length === 0 || list.length > STATEMENTS_MAX)
    throw malformedPolicy("it has no statements, or too many", ["Statement"]);
  const keys: string[] = [];
  const statements = list.map((item, index) =>
    checkPart(placeStatement(policy["Statement"], index), () =>
      compileStatement(item, bucket, rules, keys),
    ),
  );
  return new Policy(
    statements,
    keys.some((key) => key.startsWith("s3:existingobjecttag/")),
  );
}

/** Compiles the policy of a named key, with principals, and with `*` or the key as resource. Throws MalformedPolicy. */
export function compileKeyPolicy(document: unknown): Policy {
  const { Statement: given } = asObject(document, "the policy");
  const statements = Array.isArray(given) ? given : [given];
  for (const [index, item] of statements.entries()) {
    const statement = asObject(item, "a statement");
    const actions = readTexts(statement["Action"] ?? statement["NotAction"], "Action");
    const other = actions.find((action) => action !== "*" && !/^kms:/i.test(action));
    if (other === undefined) continue;
    const place = [...placeStatement(given, index), "Action"];
    throw malformedPolicy(`the action ${other} does not apply to keys`, place);
  }
  return compilePolicy(document, KEY_RESOURCES);
}

/**
 * Refuses policies that would not do what their author meant: unknown actions; in bucket policies, actions on objects
 * without object resources and vice versa; Allow with NotPrincipal. Applies to policies that are put; stored ones stay as
 * they are. Throws MalformedPolicy.
 */
export function checkPolicyActions(document: unknown, bucket: string | undefined): void {
  const { Statement: given } = document as { Statement: unknown };
  const statements = (Array.isArray(given) ? given : [given]) as Record<string, unknown>[];
  for (const [index, statement] of statements.entries()) {
    checkPart(placeStatement(given, index), () => checkStatementActions(statement, bucket));
  }
}

function placeStatement(given: unknown, index: number): PathSegment[] {
  return Array.isArray(given) ? ["Statement", index] : ["Statement"];
}

function checkStatementActions(item: Record<string, unknown>, bucket: string | undefined): void {
  if (item["Effect"] === "Allow" && item["NotPrincipal"] !== undefined) {
    // It would allow everyone else, including anonymous callers.
    throw malformedPolicy("Allow cannot be combined with NotPrincipal", ["NotPrincipal"]);
  }
  const actions = readTexts(item["Action"] ?? item["NotAction"], "Action");
  const resources = readTexts(item["Resource"] ?? item["NotResource"], "Resource");
  const levels = new Set(resources.flatMap(listResourceLevels));
  const isPlain = item["Action"] !== undefined && item["Resource"] !== undefined;
  for (const action of actions) {
    const meant = findActionLevels(action);
    if (meant.length === 0)
      throw malformedPolicy(`the action ${action} does not exist`, ["Action"]);
    const applies = meant.some((level) => level !== "account" && levels.has(level));
    if (bucket !== undefined && isPlain && !applies) {
      throw malformedPolicy(
        `the action ${action} does not apply to any resource in its statement`,
        ["Action"],
      );
    }
  }
}

function findActionLevels(text: string): ActionLevel[] {
  const pattern = foldAction(text);
  return [...S3_ACTIONS].flatMap(([name, level]) =>
    matchesWildcard(pattern, name) ? [level] : [],
  );
}

// A star may match beyond the slash.
function listResourceLevels(resource: string): ActionLevel[] {
  if (resource.includes("/")) return ["object"];
  return resource.includes("*") ? ["bucket", "object"] : ["bucket"];
}

function foldAction(text: string): string {
  return text.toLowerCase().replace(/^objstore:/, "s3:");
}

function compileStatement(
  item: unknown,
  bucket: string | undefined,
  rules: TextRules,
  keys: string[],
): Statement {
  const statement = asObject(item, "a statement");
  allowNames(
    statement,
    [
      "Sid",
      "Effect",
      "Principal",
      "NotPrincipal",
      "Action",
      "NotAction",
      "Resource",
      "NotResource",
      "Condition",
    ],
    "a statement",
  );
  const { Effect: effect, Sid: sid = "" } = statement;
  if (typeof sid !== "string") throw malformedPolicy("a Sid is no text", ["Sid"]);
  if (effect !== "Allow" && effect !== "Deny")
    throw malformedPolicy("Effect must be Allow or Deny", ["Effect"]);
  const { Condition: block } = statement;
  const compiled =
    block === undefined
      ? NO_CONDITIONS
      : checkPart(["Condition"], () => compileConditions(block, rules));
  keys.push(...compiled.keys);
  const principal = checkPart(["Principal"], () => compilePrincipal(statement, bucket));
  const resources = compileResources(statement, bucket, rules);
  return {
    effect: effect === "Allow" ? "allow" : "deny",
    matchesPrincipal: principal.matches,
    isPublic: principal.isEveryone && !compiled.isNarrow,
    matchesAction: compileActions(statement, bucket),
    resources,
    conditions: compiled.conditions,
    usesValues: compiled.conditions.length > 0 || resources.usesValues,
  };
}

function compileActions(
  statement: Record<string, unknown>,
  bucket: string | undefined,
): (action: string) => boolean {
  const { inverted, value } = pickOne(statement, "Action", "NotAction");
  const patterns = readTexts(value, "Action").map((text) => {
    const folded = foldAction(text);
    const isKey = bucket === undefined || bucket === KEY_RESOURCES;
    const isKnown = /^s3:[a-z*?]+$/.test(folded) || (isKey && /^kms:[a-z*?]+$/.test(folded));
    if (folded !== "*" && !isKnown) {
      throw malformedPolicy(`the action ${text} is not valid`, ["Action"]);
    }
    return folded;
  });
  return (action) => {
    const name = action.toLowerCase();
    return patterns.some((pattern) => matchesWildcard(pattern, name)) !== inverted;
  };
}

function compileResources(
  statement: Record<string, unknown>,
  bucket: string | undefined,
  rules: TextRules,
): CompiledResources {
  const { inverted, value } = pickOne(statement, "Resource", "NotResource");
  const texts = readTexts(value, "Resource");
  const patterns = texts.map((text) => {
    const pattern = readResource(text);
    if (pattern === "" || (text.startsWith("arn:") && pattern === text)) {
      throw malformedPolicy(`the resource ${text} is not valid`, ["Resource"]);
    }
    if (bucket !== undefined && !matchesWildcard(pattern.split("/", 1)[0]!, bucket)) {
      throw malformedPolicy(`the resource ${text} is not in this bucket`, ["Resource"]);
    }
    return {
      keys: listVariables(pattern, rules),
      expand: expandVariables(pattern, rules, "pattern"),
    };
  });
  return {
    matches: (resource, values) =>
      patterns.some(({ expand }) => matchesWildcard(expand(values), resource)) !== inverted,
    match: ({ resource, values }, unknown) => {
      const matches = patterns.map(({ keys, expand }) =>
        keys.some((key) => isUnknown(key, unknown))
          ? "maybe"
          : matchResource(expand(values), resource, unknown),
      );
      const best = (["yes", "maybe"] as const).find((match) => matches.includes(match)) ?? "no";
      return inverted ? INVERTED[best] : best;
    },
    usesValues: patterns.some(({ keys }) => keys.length > 0),
  };
}

// A bucket, an object, or a named key as `kms:key/ID`; "" for other texts.
function readResource(text: string): string {
  const key = /^arn:(?:aws|objstore|store):kms:[^:]*:[^:]*:(.+)$/.exec(text)?.[1];
  if (key !== undefined) return `kms:${key}`;
  const match = /^(?:arn:(?:aws|store):(?:s3|objstore):::)?(.+)$/.exec(text);
  return match?.[1] ?? "";
}

const INVERTED = { yes: "no", maybe: "maybe", no: "yes" } as const;

function matchResource(pattern: string, resource: string, unknown: UnknownParts): Match {
  switch (unknown.resource) {
    case undefined:
      return matchesWildcard(pattern, resource) ? "yes" : "no";
    case "bucket":
      if (/^\*+$/.test(pattern)) return "yes";
      return pattern.includes("/") ? "no" : "maybe";
    case "key": {
      const beginning = `${resource}/`;
      if (pattern.endsWith("*") && matchesWildcard(pattern, beginning)) return "yes";
      return matchesBeginning(pattern, beginning) ? "maybe" : "no";
    }
    default:
      return unknown.resource satisfies never;
  }
}
