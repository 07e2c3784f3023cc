// Problems of a configuration, explained precisely.
import type { z } from "zod";
import { type Fault, readFault, readMember } from "../errors/index.ts";
import { REDACTED, isSecretName, redactText } from "../log/index.ts";
import type { JsonDocument, JsonPath } from "./json.ts";
import {
  describeShapes,
  findShapes,
  listMembers,
  listTypes,
  readShape,
  type Shape,
} from "./shape.ts";

const PROBLEMS_MAX = 10;
const VALUE_CHARACTERS_MAX = 80;
const SHORT_WORD = /^[a-z]{0,10}$/i;

export interface ConfigProblem extends Fault {
  /** Source of the value: `config.json:3:14`, `environment PLATFORM_GATE_ADDR`, `--addr`. */
  source: string;
  /** For example `routes[3].max_body_size`; "" for the whole document. */
  path: string;
  /** The problem and the allowed values, without source and path. */
  message: string;
}

/** An invalid configuration. The message has one line per problem. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[];

  /** `hints`: further lines of the message. */
  constructor(problems: readonly ConfigProblem[], hints: readonly string[] = []) {
    super([formatProblems(problems), ...hints].join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
  }
}

/** The input of a validation, for explaining zod's issues. */
export interface IssueContext {
  schema: z.ZodType;
  input: unknown;
  /** Returns the source of a value, or of its key if `ofKey` is true. */
  locate: (path: JsonPath, ofKey: boolean) => string;
  isSecret?: (path: JsonPath) => boolean;
  /** Returns the key's own description of allowed values, if it has one. */
  describeAllowed?: (path: JsonPath) => string | undefined;
}

/** Validates a parsed document against a schema; problems contain positions in the document. */
export function validateJson<Schema extends z.ZodType>(
  schema: Schema,
  document: JsonDocument,
  options: { name: string; isSecret?: (path: JsonPath) => boolean },
): { ok: true; value: z.output<Schema> } | { ok: false; problems: ConfigProblem[] } {
  const result = schema.safeParse(document.value);
  if (result.success) return { ok: true, value: result.data };
  const problems = explainIssues(result.error.issues, {
    schema,
    input: document.value,
    locate: (path, ofKey) => locateInDocument(document, options.name, path, ofKey),
    ...(options.isSecret === undefined ? {} : { isSecret: options.isSecret }),
  });
  return { ok: false, problems };
}

/** Returns a position such as `config.json:3:14`; for a missing value, the position of the nearest enclosing value. */
export function locateInDocument(
  document: JsonDocument,
  name: string,
  path: JsonPath,
  ofKey: boolean,
): string {
  let position = ofKey ? document.locateKey(path) : undefined;
  for (let depth = path.length; position === undefined && depth >= 0; depth -= 1) {
    position = document.locateValue(path.slice(0, depth));
  }
  return position === undefined ? name : `${name}:${position.line}:${position.column}`;
}

/** Converts zod's issues to problems. */
export function explainIssues(
  issues: readonly z.core.$ZodIssue[],
  context: IssueContext,
): ConfigProblem[] {
  const shape = readShape(context.schema);
  return issues.flatMap((issue): ConfigProblem[] => {
    const path = issue.path.map((step) => (typeof step === "symbol" ? String(step) : step));
    if (issue.code === "unrecognized_keys") {
      const known = listMembers(shape, path);
      return issue.keys.map((name) => ({
        source: context.locate([...path, name], true),
        path: formatPath([...path, name]),
        message: `unknown key${suggestName(name, known)}`,
        code: "unknown_member",
        params: { names: name },
      }));
    }
    if (issue.code === "invalid_key") {
      const reasons = issue.issues.map(({ message }) => message).join("; ");
      const message = `the name ${showValue(path.at(-1), false)} is not allowed: ${reasons}`;
      return [{ source: context.locate(path, true), path: formatPath(path), message }];
    }
    if (issue.code === "invalid_union" && issue.errors.length > 0) {
      const nearest = findNearestBranch(issue.errors);
      if (nearest !== undefined) {
        return explainIssues(
          nearest.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] })),
          context,
        );
      }
    }
    const shapes = findShapes(shape, path);
    const allowed =
      context.describeAllowed?.(path) ??
      (issue.code === "custom" ? issue.message : describeShapes(shapes));
    const value = readMember(context.input, path);
    const hidden = isHidden(path, value, shapes, context);
    return [
      {
        source: context.locate(path, false),
        path: formatPath(path),
        message:
          value === undefined
            ? `is required${allowed === "" ? "" : `: ${allowed}`}`
            : `${showValue(value, hidden)} is not allowed: ${issue.code === "custom" ? allowed : `expected ${allowed || issue.message}`}`,
        ...(value === undefined ? { code: "required" } : readFault(issue, context.input)),
      },
    ];
  });
}

/** Formats a path such as `routes[3].max_body_size`. */
function formatPath(path: JsonPath): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else if (!/^[\w.-]+$/.test(step)) text += `[${JSON.stringify(step)}]`;
    else text += text === "" ? step : `.${step}`;
  }
  return text;
}

/** Returns `; did you mean "addr"?`, or the list of known names if no name is similar and the list is short. */
export function suggestName(name: string, known: readonly string[]): string {
  const wanted = name.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1;
  for (const candidate of known) {
    const distance = measureDistance(wanted, candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  if (best !== undefined) return `; did you mean ${JSON.stringify(best)}?`;
  return known.length > 0 && known.length <= 12 ? `; there are: ${known.join(", ")}` : "";
}

/** Formats a value for a message: short, on one line, redacted if secret. */
function showValue(value: unknown, secret: boolean): string {
  if (secret) return REDACTED;
  const json = JSON.stringify(value, (name, item: unknown) =>
    isSecretName(name) ? REDACTED : item,
  );
  const text = redactText(json ?? String(value));
  return text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX)}…` : text;
}

function formatProblems(problems: readonly ConfigProblem[]): string {
  const lines = problems.slice(0, PROBLEMS_MAX).map(({ source, path, message }) => {
    return path === "" ? `${source}: ${message}` : `${source}: ${path}: ${message}`;
  });
  if (problems.length > PROBLEMS_MAX) lines.push(`… and ${problems.length - PROBLEMS_MAX} more`);
  return lines.join("\n");
}

// A name such as `require_api_key` does not make a value secret: numbers, booleans and short words of a key that takes
// no text are shown.
function isHidden(
  path: JsonPath,
  value: unknown,
  shapes: readonly Shape[],
  context: IssueContext,
): boolean {
  if (context.isSecret?.(path) === true) return true;
  if (!path.some((step) => typeof step === "string" && isSecretName(step))) return false;
  if (typeof value === "object" && value !== null) return true;
  if (typeof value !== "string") return false;
  const takesText = shapes.length === 0 || shapes.some(isFreeText);
  return takesText || !SHORT_WORD.test(value);
}

function isFreeText(shape: Shape): boolean {
  return listTypes([shape]).has("string") && shape.enum === undefined && shape.const === undefined;
}

// Selects the branch of a union that matches the value best: its problems are more helpful than "no branch matches".
function findNearestBranch(
  branches: readonly (readonly z.core.$ZodIssue[])[],
): readonly z.core.$ZodIssue[] | undefined {
  const deep = branches.filter((issues) =>
    issues.every((issue) => issue.path.length > 0 || issue.code === "unrecognized_keys"),
  );
  return deep.length === 1 ? deep[0] : undefined;
}

// Levenshtein distance, up to a bound.
function measureDistance(left: string, right: string, bound: number): number {
  if (Math.abs(left.length - right.length) >= bound || left.length > 64) return bound;
  let row = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const change = left[i - 1] === right[j - 1] ? 0 : 1;
      next.push(Math.min(next[j - 1]! + 1, row[j]! + 1, row[j - 1]! + change));
    }
    row = next;
  }
  return row[right.length]!;
}
