// Fields of a route that limit its clients.
import { z } from "zod";
import { networkSchema } from "../config/address.ts";
import { DAY_MS, text, unset, wholeNumber } from "./value.ts";

/** Maximum requests per minute of one key: the gateway counts those of a second in 20 bits. */
export const RATE_MAX = 1_000_000;

/** Maximum number of networks in one list, inline or in a file. */
export const NETWORKS_MAX = 1_000_000;

const RATE_LIMITS_MAX = 15;
const REQUESTS_MAX = 1_000_000;

const RATE_KEYS = ["ip", "api_key", "tenant", "header", "claim"] as const;
/** Property of requests that a limit counts by. */
type RateKey = (typeof RATE_KEYS)[number];

const rateLimitSchema = z
  .strictObject({
    by: z.enum(RATE_KEYS).meta({
      description:
        "property that requests are counted by: client address (an IPv6 address by its /64), API key, tenant, a header field or a claim; requests without it are counted by address",
    }),
    name: unset(text(128)).meta({ description: "name of the header field or claim" }),
    rpm: wholeNumber(1, RATE_MAX).meta({ description: "maximum requests in any 60 s" }),
  })
  .superRefine(({ by, name }, context) => {
    const isNamed = by === "header" || by === "claim";
    if (isNamed === (name !== undefined)) return;
    const message = isNamed ? `is required with by: "${by}"` : `is not allowed with by: "${by}"`;
    context.addIssue({ code: "custom", path: ["name"], message });
  });

/** Fields of {@link LimitFields} with their schemas. */
export const limitFields = {
  ip_allowlist: unset(z.array(networkSchema()).max(NETWORKS_MAX)).meta({
    description:
      "addresses and CIDR ranges of the only clients that may use the route; others get 403",
  }),
  ip_blocklist: unset(z.array(networkSchema()).max(NETWORKS_MAX)).meta({
    description:
      "addresses and CIDR ranges of clients that get 403, even if they are in ip_allowlist",
  }),
  rate_limit_rpm: unset(wholeNumber(1, RATE_MAX)).meta({
    description:
      "maximum requests of one client address in any 60 s (an IPv6 address counts by its /64); further ones get 429; shared by all gateways with limits_redis_url",
  }),
  rate_limits: unset(z.array(rateLimitSchema).max(RATE_LIMITS_MAX)).meta({
    description: "further limits, by other properties of requests",
  }),
  max_concurrent_requests: unset(wholeNumber(1, REQUESTS_MAX)).meta({
    description: "maximum concurrent requests; further ones wait or get 503",
  }),
  max_queue_size: unset(wholeNumber(1, REQUESTS_MAX)).meta({
    description: "maximum requests that wait, in order of arrival; default: 0",
  }),
  queue_timeout_ms: unset(wholeNumber(1, DAY_MS)).meta({
    description: "maximum wait in ms, then 504; default: 5000",
  }),
};

/** Validated {@link limitFields}. */
export interface LimitFields {
  readonly ip_allowlist?: readonly string[];
  readonly ip_blocklist?: readonly string[];
  readonly rate_limit_rpm?: number;
  readonly rate_limits?: readonly {
    readonly by: RateKey;
    readonly name?: string;
    readonly rpm: number;
  }[];
  readonly max_concurrent_requests?: number;
  readonly max_queue_size?: number;
  readonly queue_timeout_ms?: number;
}

/** Reports fields that need another one. */
export function checkLimitFields(route: LimitFields, context: z.RefinementCtx): void {
  if (route.max_concurrent_requests !== undefined) return;
  for (const key of ["max_queue_size", "queue_timeout_ms"] as const) {
    if (route[key] === undefined) continue;
    context.addIssue({ code: "custom", path: [key], message: "requires max_concurrent_requests" });
  }
}
