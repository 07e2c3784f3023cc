// The stored form of the global policy.
import * as z from "zod";
import type { PolicySpec } from "../shared-state/index.ts";

/** Schema of a stored policy. */
export const policySchema: z.ZodType<PolicySpec> = z.strictObject({
  version: z.int(),
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
