// Codes of invalid values: clients show words of their own language for them, whereas messages are English.
import type { z } from "zod";

/** Values that the words of a fault contain, such as a bound. */
export type FaultParams = Readonly<Record<string, string | number>>;

/**
 * An invalid value. Codes of schemas: `required`, `wrong_type` (`expected`), `too_short` and `too_long` (`min`, `max`
 * characters), `too_few` and `too_many` (`min`, `max` items), `too_small` and `too_large` (`min` or `above`, `max` or
 * `below`), `not_multiple` (`of`), `wrong_format` (`format`), `not_allowed_value` (`allowed`) and `unknown_member`
 * (`names`); `regex` (`reason`, `at`) of patterns, and `json_syntax`. Services have further codes of their own; without a code there is only the message.
 */
export interface Fault {
  code?: string;
  params?: FaultParams;
}

const LIST_CHARS_MAX = 200;

/** Fault of one of zod's issues; `input` is the validated value. Custom issues have their code in `params.code`. */
export function readFault(issue: z.core.$ZodIssue, input: unknown): Fault {
  switch (issue.code) {
    case "invalid_type":
    case "invalid_value":
    case "invalid_union":
      if (readMember(input, issue.path) === undefined) return { code: "required" };
      if (issue.code === "invalid_union") return {};
      return issue.code === "invalid_type"
        ? { code: "wrong_type", params: { expected: issue.expected } }
        : { code: "not_allowed_value", params: { allowed: joinList(issue.values) } };
    case "too_small":
      return readBound(issue.origin, "small", Number(issue.minimum), issue.inclusive !== false);
    case "too_big":
      return readBound(issue.origin, "big", Number(issue.maximum), issue.inclusive !== false);
    case "not_multiple_of":
      return { code: "not_multiple", params: { of: issue.divisor } };
    case "invalid_format":
      return { code: "wrong_format", params: { format: issue.format } };
    case "unrecognized_keys":
      return { code: "unknown_member", params: { names: joinList(issue.keys) } };
    case "custom":
      return readCustom(issue.params);
    default:
      return {};
  }
}

/** Fault of a regular expression that RE2 refuses: `regex`, with its `reason` and the part `at` which it fails. */
export function readPatternFault(cause: unknown): Fault {
  const { error, input } = (cause ?? {}) as { error?: unknown; input?: unknown };
  if (typeof error !== "string") return {};
  const at = typeof input === "string" && input !== "" ? { at: joinList([input]) } : {};
  return { code: "regex", params: { reason: error, ...at } };
}

/** The member of a value at a path; undefined if it or a value around it is missing. */
export function readMember(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const step of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) {
      return undefined;
    }
    value = (value as Record<PropertyKey, unknown>)[step];
  }
  return value;
}

function readBound(origin: string, side: "small" | "big", bound: number, isInclusive: boolean) {
  const isSmall = side === "small";
  const params: FaultParams = { [isSmall ? "min" : "max"]: bound };
  switch (origin) {
    case "string":
      return { code: isSmall ? "too_short" : "too_long", params };
    case "array":
    case "set":
    case "map":
    case "object":
      return { code: isSmall ? "too_few" : "too_many", params };
    default:
      return {
        code: isSmall ? "too_small" : "too_large",
        params: isInclusive ? params : { [isSmall ? "above" : "below"]: bound },
      };
  }
}

function readCustom(params: Readonly<Record<string, unknown>> | undefined): Fault {
  const { code, ...others } = params ?? {};
  if (typeof code !== "string") return {};
  const values = Object.entries(others).filter(
    (entry): entry is [string, string | number] =>
      typeof entry[1] === "string" || typeof entry[1] === "number",
  );
  return values.length === 0 ? { code } : { code, params: Object.fromEntries(values) };
}

function joinList(values: readonly unknown[]): string {
  const text = values.map(String).join(", ");
  return text.length > LIST_CHARS_MAX ? `${text.slice(0, LIST_CHARS_MAX)} …` : text;
}
