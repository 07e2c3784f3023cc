// Fields of a route for failing targets: circuit breaker, retries, outlier statuses and canary promotion.
import { retrySchema, statuses } from "@platform/kernel/route-rules";
import { z } from "zod";
import { CIRCUIT_WINDOW_SECONDS_MAX } from "../shared-state/index.ts";
import { DAY_MS, unset, wholeNumber, yesNo } from "./value.ts";

const share = () => z.number().min(0).max(1);

const breakerSchema = z.strictObject({
  error_rate: share().default(0.5).meta({
    description:
      "share of failures that opens the circuit: 5xx, outlier_statuses, no connection, no response",
  }),
  min_requests: wholeNumber(1, 1_000_000).default(10).meta({
    description: "requests in the window below which the circuit stays closed",
  }),
  window_sec: wholeNumber(1, CIRCUIT_WINDOW_SECONDS_MAX).default(10).meta({
    description: "length of the window in seconds",
  }),
  open_ms: wholeNumber(1, DAY_MS).default(10_000).meta({
    description:
      "time without requests after the first opening in ms; doubles with each further one; 250 after a refused connection, and while the circuits of all targets are open, one request in 250 ms is let through: its success closes the circuit",
  }),
  max_open_ms: wholeNumber(1, DAY_MS).default(300_000).meta({
    description: "maximum time without requests in ms",
  }),
  probes: wholeNumber(1, 1_000).default(3).meta({
    description: "requests that are let through afterwards; the circuit closes if all succeed",
  }),
});

/** The circuit breaker of routes that do not configure one. */
export const BREAKER_DEFAULT: Readonly<z.infer<typeof breakerSchema>> = breakerSchema.parse({});

const healthCheckSchema = z.strictObject({
  path: z
    .string()
    .max(2_048)
    .regex(/^\/[!-~]*$/, { error: 'expected a path that starts with "/"' })
    .meta({ description: "path on the target; a status below 400 passes" }),
  interval_ms: wholeNumber(100, DAY_MS).default(5_000).meta({
    description: "time between two checks in ms",
  }),
  timeout_ms: wholeNumber(1, 60_000).default(2_000).meta({
    description: "maximum time until the response head in ms",
  }),
  healthy_after: wholeNumber(1, 100).default(2).meta({
    description: "passed checks in a row after which a target gets requests again",
  }),
  unhealthy_after: wholeNumber(1, 100).default(3).meta({
    description: "failed checks in a row after which it gets none",
  }),
});

const stickySchema = z.strictObject({
  cookie: z
    .string()
    .max(64)
    .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, { error: "expected the name of a cookie" })
    .default("platform_gate_target")
    .meta({ description: "name of the cookie" }),
  max_age_sec: unset(wholeNumber(1, 31_536_000)).meta({
    description: "life of the cookie in seconds; default: until the browser ends",
  }),
  secure: z.boolean().default(false).meta({ description: "the cookie is sent over TLS only" }),
});

/** Fields of {@link RouteResilienceFields} with their schemas. */
export const routeResilienceFields = {
  circuit_breaker: unset(
    z.preprocess(
      (value) => (value === true ? {} : value),
      z.union([breakerSchema, z.literal(false)]),
    ),
  ).meta({
    description:
      "stops requests to a target that fails, for each target of the route; while all circuits are open: 503. `true`, the default, uses the default numbers, `false` switches it off",
  }),
  retry: unset(retrySchema).meta({
    description: "retries instead of the defaults (2 at other targets, if no response has begun)",
  }),
  outlier_statuses: unset(statuses()).meta({
    description: "statuses that count against the health of a target like a failed connection",
  }),
  health_check: unset(healthCheckSchema).meta({
    description:
      "requests by which the gateway checks each target; a target that fails gets no requests, as long as at least half of the targets remain",
  }),
  sticky: unset(stickySchema).meta({
    description: "keep each client at one target by a cookie, as long as the target is healthy",
  }),
  canary_auto_promote: yesNo().meta({
    description: "shift traffic step by step to the last of two targets_weighted",
  }),
  canary_promote_step: unset(wholeNumber(1, 100)).meta({
    description: "percentage points per step; default: 10",
  }),
  canary_promote_sec: unset(wholeNumber(1, 86_400)).meta({
    description: "time between steps in seconds; default: 60",
  }),
  canary_max_error_rate: unset(share()).meta({
    description:
      "share of failed attempts, of at least 3, above which all traffic returns to the first target; default: 0.05",
  }),
};

/** Validated {@link routeResilienceFields}. */
export interface RouteResilienceFields {
  readonly circuit_breaker?: z.infer<typeof breakerSchema> | false;
  readonly retry?: z.infer<typeof retrySchema>;
  readonly outlier_statuses?: readonly number[];
  readonly health_check?: z.infer<typeof healthCheckSchema>;
  readonly sticky?: {
    readonly cookie: string;
    readonly max_age_sec?: number;
    readonly secure: boolean;
  };
  readonly canary_auto_promote?: boolean;
  readonly canary_promote_step?: number;
  readonly canary_promote_sec?: number;
  readonly canary_max_error_rate?: number;
}

/** Reports a canary without exactly two weighted targets. */
export function checkResilienceFields(
  route: RouteResilienceFields & { readonly targets_weighted?: readonly unknown[] },
  context: z.RefinementCtx,
): void {
  if (route.canary_auto_promote !== true || route.targets_weighted?.length === 2) return;
  context.addIssue({
    code: "custom",
    path: ["canary_auto_promote"],
    message: "requires exactly two targets_weighted; the last one is the canary",
    params: { code: "canary_targets" },
  });
}
