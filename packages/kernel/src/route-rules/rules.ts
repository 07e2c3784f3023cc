// Rules that a project sets for its routes at the gateway: a closed list of fields, which name no host, target, file,
// variable or other service.
import { z } from "zod";
import { type BoundFields, boundFields } from "./bounds.ts";
import { type CacheFields, cacheFields, checkCacheFields } from "./cache.ts";
import { corsSchema } from "./cors.ts";
import { guardFields } from "./guards.ts";
import { checkLimitFields, type LimitFields, limitFields } from "./limits.ts";
import { retrySchema } from "./retry.ts";
import { unset } from "./value.ts";

/** Rules of a project, or of one of its routes, with the field names of the gateway. */
export interface GatewayRules extends BoundFields, LimitFields, CacheFields {
  /** Pages of other origins that may send requests. */
  readonly cors?: {
    readonly origins: readonly string[];
    readonly methods?: readonly string[];
    readonly headers?: readonly string[];
    readonly expose_headers?: readonly string[];
    readonly credentials?: boolean;
    readonly max_age_s?: number;
  };
  readonly retry?: {
    readonly attempts?: number;
    readonly statuses?: readonly number[];
    readonly on_timeout?: boolean;
  };
  /** `bearer` requires a token of the platform's identity; `none` opens a route of a project that requires one. */
  readonly auth?:
    | { readonly type: "none" }
    | { readonly type: "bearer"; readonly required_scope?: string };
  /** Requires an API key of a tenant. */
  readonly require_api_key?: boolean;
  /** Tenants that may use the route, by their API key or the claim `tenant`. */
  readonly allowed_tenants?: readonly string[];
  /** Lines `allow|deny METHOD PATH [if header.NAME == VALUE]`; the first that matches decides. */
  readonly policy?: string;
}

/** Fields that decide who may use a route: without them, it would be open to others. */
export const ACCESS_FIELDS = [
  "auth",
  "require_api_key",
  "allowed_tenants",
  "policy",
  "ip_allowlist",
  "ip_blocklist",
] as const satisfies readonly (keyof GatewayRules)[];

/** A fault of rules. */
export interface RulesProblem {
  /** Keys and indices that lead to it. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/;
/** Fields of the gateway's routes that projects must not set, by the reason. */
const REFUSED: Readonly<Record<string, string>> = {
  ...reasons("the platform chooses host, path and target", [
    "prefix",
    "host",
    "methods",
    "paths",
    "target",
    "targets",
    "targets_weighted",
    "host_header",
  ]),
  ...reasons("rules of a project name no file", [
    "ip_allowlist_file",
    "ip_blocklist_file",
    "files",
    "client_cert_path",
    "client_key_path",
    "root_ca_path",
    "openapi",
  ]),
  ...reasons("rules of a project name no other service", ["mirror", "redirect"]),
};

const authSchema = z.strictObject(
  {
    type: z.enum(["none", "bearer"]),
    required_scope: z
      .string()
      .regex(SCOPE, { error: "expected a scope such as notes:read" })
      .optional(),
  },
  {
    error: ({ code }) =>
      code === "unrecognized_keys"
        ? "tokens are those of this platform; the members are type and required_scope"
        : undefined,
  },
);

const fields = {
  ...boundFields,
  ...limitFields,
  ...cacheFields,
  ...guardFields,
  cors: unset(corsSchema),
  retry: unset(retrySchema),
  auth: unset(
    authSchema.refine((auth) => auth.type === "bearer" || auth.required_scope === undefined, {
      path: ["required_scope"],
      error: 'type "none" does not use it',
    }),
  ),
};
const schema = z.strictObject(fields);

/** Names of the fields. */
export const RULE_FIELDS = Object.keys(fields) as readonly (keyof GatewayRules)[];

/**
 * Checks rules as the gateway does. Fields that require another one may have it in `inherited`, the rules of the project.
 * Empty values are no way to leave out who may use a route: a list that the code computes may be empty by mistake.
 */
export function checkRules(rules: unknown, inherited: GatewayRules = {}): RulesProblem[] {
  if (!isPlainObject(rules)) return [{ path: [], message: "expected an object of rules" }];
  const problems: RulesProblem[] = [];
  for (const [name, value] of Object.entries(rules)) {
    const isEmpty = value === "" || (Array.isArray(value) && value.length === 0);
    const isAccess = (ACCESS_FIELDS as readonly string[]).includes(name);
    if (value === undefined) problems.push({ path: [name], message: "is undefined" });
    else if (value === null) problems.push({ path: [name], message: "is null" });
    else if (isAccess && isEmpty) {
      problems.push({ path: [name], message: "is empty, and would restrict nobody" });
    }
  }
  if (problems.length > 0) return problems;
  const parsed = schema.safeParse(rules);
  if (!parsed.success) return parsed.error.issues.flatMap(describeIssue);
  return checkTogether(rules, inherited);
}

function checkTogether(rules: GatewayRules, inherited: GatewayRules): RulesProblem[] {
  const together = schema
    .superRefine((route, context) => {
      checkLimitFields(route as LimitFields, context);
      checkCacheFields(route as CacheFields, undefined, context);
    })
    .safeParse({ ...inherited, ...rules });
  if (together.success) return [];
  const own = together.error.issues.filter(({ path }) => Object.hasOwn(rules, path[0]!));
  return own.flatMap(describeIssue);
}

function describeIssue(issue: z.core.$ZodIssue): RulesProblem[] {
  const path = issue.path.filter((key) => typeof key !== "symbol");
  if (issue.code !== "unrecognized_keys") return [{ path, message: issue.message }];
  return issue.keys.map((key) => {
    const isTop = path.length === 0;
    const reason = isTop && Object.hasOwn(REFUSED, key) ? REFUSED[key] : undefined;
    const fallback = isTop ? `the fields are ${RULE_FIELDS.join(", ")}` : issue.message;
    return { path: [...path, key], message: `is not allowed: ${reason ?? fallback}` };
  });
}

function reasons(reason: string, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, reason]));
}

// Inherited members would be read as rules, and are no members of the JSON that the gateway gets.
function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** True if rules decide who may use a route. */
export function restrictsAccess(rules: GatewayRules): boolean {
  const { auth, require_api_key: requiresKey } = rules;
  const lists = ["allowed_tenants", "policy", "ip_allowlist", "ip_blocklist"] as const;
  return (
    auth?.type === "bearer" ||
    requiresKey === true ||
    lists.some((name) => rules[name] !== undefined)
  );
}
