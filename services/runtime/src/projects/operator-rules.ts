// The operator's bounds for gateway rules of projects (`gate/projects.json` in the data folder): values that are fixed, highest
// values, and fields that projects must not set.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
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
  readonly cuts: readonly string[];
}

const NO_BOUNDS: OperatorBounds = { fix: {}, cap: {}, forbid: [] };

/** The path of the file. */
function getBoundsPath(dataDir: string): string {
  return join(dataDir, "gate", "projects.json");
}

/** Reads the bounds for a project. Throws an explanation of an invalid file: it must not open what it was to close. */
export function readBounds(dataDir: string, name: string): OperatorBounds {
  const path = getBoundsPath(dataDir);
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
  const invalid = (reason: string): Error => new Error(`${formatFolder(path)}: ${reason}`);
  let document: unknown;
  try {
    document = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw invalid((error as Error).message);
  }
  const parsed = fileSchema.safeParse(document);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw invalid(`${issue!.path.join(".")}: ${issue!.message}`);
}

/**
 * Applies the bounds to the rules of a project or a route. Throws if they forbid a rule that restricts access: without it, the
 * route would be open to others.
 */
export function applyBounds(given: GatewayRules, { fix, cap, forbid }: OperatorBounds): BoundRules {
  const rules: Record<string, unknown> = {};
  const cuts: string[] = [];
  for (const [name, value] of Object.entries(given)) {
    const highest = cap[name];
    if (Object.hasOwn(fix, name)) {
      const fixed = fix[name as keyof GatewayRules];
      if (JSON.stringify(fixed) === JSON.stringify(value)) continue;
      cuts.push(`${name} is ${JSON.stringify(fixed)}, not ${JSON.stringify(value)}: it is fixed`);
    } else if (forbid.includes(name)) {
      if ((ACCESS_FIELDS as readonly string[]).includes(name)) {
        throw new Error(`the operator of the platform forbids ${name} in rules of projects`);
      }
      cuts.push(`${name} has no effect: it is forbidden`);
    } else if (highest !== undefined && typeof value === "number" && exceeds(value, highest)) {
      rules[name] = highest;
      cuts.push(`${name} is ${highest}, not ${value}: the highest value`);
    } else rules[name] = value;
  }
  Object.assign(rules, fix);
  // Fields without the one that they belong to.
  for (const { path } of checkRules(rules)) {
    const name = String(path[0]);
    if (!Object.hasOwn(rules, name) || (ACCESS_FIELDS as readonly string[]).includes(name))
      continue;
    delete rules[name];
    cuts.push(`${name} has no effect: the field that it requires has none`);
  }
  return { rules, cuts };
}

// For the gateway, 0 is the same as no value.
function exceeds(value: number, highest: number): boolean {
  return value === 0 || value > highest;
}
