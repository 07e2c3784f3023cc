// Resolves the fields of a route that limit its clients.
import type { RouteConfig } from "../config/route.ts";
import type {
  AddressesSpec,
  ConcurrencySpec,
  NetworkListSpec,
  RateKeySpec,
  RateLimitSpec,
  StepSpecs,
  StickySpec,
} from "../shared-state/index.ts";
import type { ReadFile } from "./confinement.ts";
import type { NetworkLists } from "./network-lists.ts";
import { describeCause, refuseField } from "./route-fault.ts";

const QUEUE_TIMEOUT_MS_DEFAULT = 5_000;

/** Settings of the steps that limit clients. Throws `validation_failed` with the key if a list is not usable. */
export function resolveLimits(
  config: RouteConfig,
  label: string,
  lists: NetworkLists,
  read: ReadFile,
): Pick<StepSpecs, "addresses" | "rateLimits" | "concurrency" | "sticky"> {
  const addresses = resolveAddresses(config, label, lists, read);
  const rateLimits = resolveRateLimits(config);
  const concurrency = resolveConcurrency(config);
  return {
    ...(addresses === undefined ? {} : { addresses }),
    ...(rateLimits.length === 0 ? {} : { rateLimits }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(config.sticky === undefined ? {} : { sticky: resolveSticky(config.sticky) }),
  };
}

function resolveAddresses(
  config: RouteConfig,
  label: string,
  lists: NetworkLists,
  read: ReadFile,
): AddressesSpec | undefined {
  const compile = (name: "ip_allowlist" | "ip_blocklist"): NetworkListSpec[] => {
    const inline = config[name];
    const path = config[`${name}_file`];
    const found = inline === undefined ? [] : [lists.compile(inline)];
    if (path === undefined) return found;
    try {
      return [...found, lists.read(path, read)];
    } catch (cause) {
      throw refuseField(label, `${name}_file`, path, `cannot be used: ${describeCause(cause)}`);
    }
  };
  const allow = compile("ip_allowlist");
  const block = compile("ip_blocklist");
  return allow.length + block.length === 0 ? undefined : { allow, block };
}

function resolveRateLimits(config: RouteConfig): RateLimitSpec[] {
  const limits: RateLimitSpec[] = [];
  if (config.rate_limit_rpm !== undefined) {
    limits.push({ name: "ip", by: { kind: "ip" }, perMinute: config.rate_limit_rpm });
  }
  for (const { by, name, rpm } of config.rate_limits ?? []) {
    const isTaken = (wanted: string): boolean => limits.some((limit) => limit.name === wanted);
    let unique: string = by;
    for (let next = 2; isTaken(unique); next++) unique = `${by}-${next}`;
    limits.push({ name: unique, by: makeRateKey(by, name ?? ""), perMinute: rpm });
  }
  return limits;
}

function makeRateKey(by: RateKeySpec["kind"], name: string): RateKeySpec {
  return by === "header" || by === "claim" ? { kind: by, name } : { kind: by };
}

function resolveSticky(sticky: NonNullable<RouteConfig["sticky"]>): StickySpec {
  const { cookie, max_age_sec: maxAgeSeconds, secure: isSecure } = sticky;
  return { cookie, isSecure, ...(maxAgeSeconds === undefined ? {} : { maxAgeSeconds }) };
}

function resolveConcurrency(config: RouteConfig): ConcurrencySpec | undefined {
  const { max_concurrent_requests: requestsMax } = config;
  if (requestsMax === undefined) return undefined;
  return {
    requestsMax,
    queueMax: config.max_queue_size ?? 0,
    queueTimeoutMs: config.queue_timeout_ms ?? QUEUE_TIMEOUT_MS_DEFAULT,
  };
}
