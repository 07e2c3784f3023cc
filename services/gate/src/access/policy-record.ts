// The stored form of the global policy, and the choice between two of them.
import { z } from "zod";
import { PlatformError } from "@platform/kernel/errors";
import type { PolicyRule, PolicySpec } from "../shared-state/index.ts";

const POLICY_CHARACTERS_MAX = 2_097_152;

/** A reload of the policy; without rules the present ones stay. */
export interface PolicyReload {
  version?: number | undefined;
  /** A lower version than the active one is meant. */
  allow_lower_version?: boolean | undefined;
  default?: "allow" | "deny" | undefined;
  rules?: readonly PolicyRule[] | undefined;
}

/** Schema of a stored policy. */
export const policySchema: z.ZodType<PolicySpec> = z.strictObject({
  version: z.int(),
  generation: z.int().min(0).exactOptional(),
  reloadedAt: z.number(),
  default: z.enum(["allow", "deny"]),
  rules: z.array(
    z.strictObject({
      effect: z.enum(["allow", "deny"]),
      methods: z.array(z.string()).exactOptional(),
      path: z.string().exactOptional(),
      header: z.strictObject({ name: z.string(), equals: z.string() }).exactOptional(),
    }),
  ),
});

/**
 * The policy after a reload. Throws `conflict` for a lower version that is not meant: a mistake in one request could make
 * all gateways ignore the reloads of others, whose versions are lower.
 */
export function advancePolicy(before: PolicySpec, reload: PolicyReload, now: number): PolicySpec {
  const version = reload.version ?? before.version + 1;
  const isLower = version < before.version;
  if (isLower && reload.allow_lower_version !== true) {
    throw new PlatformError(
      "conflict",
      `version ${version} is lower than the active version ${before.version}; with "allow_lower_version": true it replaces it`,
    );
  }
  if (!Number.isSafeInteger(version)) {
    throw new PlatformError(
      "conflict",
      `the active version ${before.version} is the highest; reload with a lower "version" and "allow_lower_version": true`,
    );
  }
  const generation = (before.generation ?? 0) + (isLower ? 1 : 0);
  return {
    version,
    ...(generation === 0 ? {} : { generation }),
    reloadedAt: now,
    default: reload.default ?? (reload.rules === undefined ? before.default : "allow"),
    rules: reload.rules ?? before.rules,
  };
}

/** True if a policy replaces another one: an operator lowered the version later, its version is higher, or it was loaded later. */
function isNewerPolicy(policy: PolicySpec, known: PolicySpec): boolean {
  const order =
    (policy.generation ?? 0) - (known.generation ?? 0) ||
    policy.version - known.version ||
    policy.reloadedAt - known.reloadedAt;
  return order > 0 || (order === 0 && JSON.stringify(policy) > JSON.stringify(known));
}

/** The policy of another gateway, as JSON, if it replaces the own one. */
export function readNewerPolicy(text: string | undefined, own: PolicySpec): PolicySpec | undefined {
  if (text === undefined || text.length > POLICY_CHARACTERS_MAX) return undefined;
  try {
    const { data } = policySchema.safeParse(JSON.parse(text));
    return data !== undefined && isNewerPolicy(data, own) ? data : undefined;
  } catch {
    return undefined;
  }
}
