// The operator's bounds for gateway rules of projects (`gate/projects.json` in the data folder): values that are fixed, highest
// values, and fields that projects must not set.
import { existsSync, readFileSync } from "node:fs";
import { ConfigError, JsonSyntaxError, parseJson, validateJson } from "@platform/kernel/config";
import {
  ACCESS_FIELDS,
  checkRules,
  RULE_FIELDS,
  type GatewayRules,
} from "@platform/kernel/route-rules";
import { z } from "zod";
import { formatFolder } from "../data-folder/data-folder.ts";

/** Fields with a number that a cap can bound. */
const NUMBER_FIELDS = [
  "rate_limit_rpm",
  "max_concurrent_requests",
  "max_queue_size",
  "queue_timeout_ms",
  "max_body_size",
  "connect_timeout_ms",
  "response_timeout_ms",
  "idle_timeout_ms",
  "total_timeout_ms",
  "cache_ttl_seconds",
] as const satisfies readonly (keyof GatewayRules)[];

const boundsSchema = z.strictObject({
  fix: z
    .custom<GatewayRules>()
    .superRefine((rules, context) => {
      for (const { path, message } of checkRules(rules)) {
        context.addIssue({ code: "custom", path: [...path], message });
      }
    })
    .optional(),
  cap: z.partialRecord(z.enum(NUMBER_FIELDS), z.int().min(1)).optional(),
  forbid: z.array(z.enum(RULE_FIELDS as [keyof GatewayRules])).optional(),
});
const fileSchema = z.strictObject({
  all: boundsSchema.optional(),
  projects: z.record(z.string(), boundsSchema).optional(),
});

/** Bounds for one project. */
export interface OperatorBounds {
  readonly fix: GatewayRules;
  readonly cap: Readonly<Partial<Record<string, number>>>;
  readonly forbid: readonly string[];
}

/** Rules within the bounds. */
export interface BoundRules {
  readonly rules: GatewayRules;
  /** Changes by the operator's bounds, in words. */
  readonly cuts: readonly { readonly field: string; readonly text: string }[];
}

const NO_BOUNDS: OperatorBounds = { fix: {}, cap: {}, forbid: [] };

/** Reads the bounds for a project. Throws an explanation of an invalid file: it must not open what it was to close. */
export function readBounds(path: string, name: string): OperatorBounds {
  if (!existsSync(path)) return NO_BOUNDS;
  const { all = {}, projects = {} } = parseBounds(path);
  const own = Object.hasOwn(projects, name) ? projects[name]! : {};
  return {
    fix: { ...all.fix, ...own.fix },
    cap: { ...all.cap, ...own.cap },
    forbid: [...(all.forbid ?? []), ...(own.forbid ?? [])],
  };
}

function parseBounds(path: string): z.output<typeof fileSchema> {
  const name = formatFolder(path);
  try {
    const result = validateJson(fileSchema, parseJson(readFileSync(path, "utf8")), { name });
    if (result.ok) return result.value;
    throw new ConfigError(result.problems);
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    const { line, column } = error.position;
    throw new Error(`${name}:${line}:${column}: ${error.message}`, { cause: error });
  }
}

/**
 * Applies the bounds to the rules of a project or a route. Throws if they forbid a rule that restricts access: without it, the
 * route would be open to others.
 */
export function applyBounds(given: GatewayRules, bounds: OperatorBounds): BoundRules {
  const rules: Record<string, unknown> = {};
  const cuts: { field: string; text: string }[] = [];
  for (const [field, value] of Object.entries(given)) {
    const { kept, cut } = bindField(field, value, bounds);
    if (kept !== undefined) rules[field] = kept;
    if (cut !== undefined) cuts.push({ field, text: `${field} ${cut}` });
  }
  Object.assign(rules, bounds.fix);
  // Fields without the one that they belong to.
  for (const { path } of checkRules(rules)) {
    const field = String(path[0]);
    if (!Object.hasOwn(rules, field) || isAccess(field)) continue;
    delete rules[field];
    cuts.push({ field, text: `${field} has no effect: the field that it requires has none` });
  }
  return { rules, cuts };
}

function bindField(
  field: string,
  value: unknown,
  { fix, cap, forbid }: OperatorBounds,
): { kept?: unknown; cut?: string } {
  if (Object.hasOwn(fix, field)) {
    const [fixed, own] = [fix[field as keyof GatewayRules], value].map((one) =>
      JSON.stringify(one),
    );
    return fixed === own ? {} : { cut: `is ${fixed}, not ${own}: it is fixed` };
  }
  if (forbid.includes(field)) {
    if (!isAccess(field)) return { cut: "has no effect: it is forbidden" };
    throw new Error(`the operator of the platform forbids ${field} in rules of projects`);
  }
  const highest = Object.hasOwn(cap, field) ? cap[field] : undefined;
  if (highest === undefined || typeof value !== "number" || !exceeds(value, highest)) {
    return { kept: value };
  }
  return { kept: highest, cut: `is ${highest}, not ${value}: the highest value` };
}

function isAccess(field: string): boolean {
  return (ACCESS_FIELDS as readonly string[]).includes(field);
}

// For the gateway, 0 is the same as no value.
function exceeds(value: number, highest: number): boolean {
  return value === 0 || value > highest;
}
