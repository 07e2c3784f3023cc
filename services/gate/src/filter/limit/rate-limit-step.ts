// The steps of rate limits: by address before the caller is authenticated, by other properties afterwards.
import type { HeadWriter } from "@platform/http1";
import { createRetryLaterError } from "@platform/kernel/errors";
import { findSubscriberNetwork } from "@platform/kernel/network";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import type { RateKey, RateRule } from "../../exchange/rate-key.ts";
import type { PreparedField } from "../../exchange/response-fields.ts";
import {
  type ApiKeySpec,
  makeRouteLabel,
  RATE_WINDOW_SECONDS,
  type RateKeySpec,
  type RateLimitSpec,
  type RouteSpec,
} from "../../shared-state/index.ts";
import type { RateLimiter, RateVerdict } from "./rate-limiter.ts";
import type { StepParts } from "../step-parts.ts";

/** Maximum rate limits of a route. */
const RATE_LIMITS_MAX = 16;
/** Above the spaces of all routes. */
const KEY_SPACE = 2 ** 30;
const KEY_TITLE = "api-key";
const RESET = Buffer.from(";t=");

/** Limits by address: they come before any costly step. */
export function createAddressRateStep(spec: RouteSpec, parts: StepParts): Step | undefined {
  return createStep(spec, parts, (by) => by.kind === "ip");
}

/** Limits by properties that earlier steps have verified. */
export function createCallerRateStep(spec: RouteSpec, parts: StepParts): Step | undefined {
  return createStep(spec, parts, (by) => by.kind !== "ip", spec.steps.requiresApiKey === true);
}

function createStep(
  spec: RouteSpec,
  parts: StepParts,
  isHere: (by: RateKeySpec) => boolean,
  countsKeys = false,
): Step | undefined {
  // Routes of one prefix for different methods have limits of their own, in Redis, too.
  const methods = spec.methods === undefined ? "" : ` ${spec.methods.join()}`;
  const variant = spec.variant === undefined ? "" : ` #${spec.variant}`;
  const label = makeRouteLabel(spec.host, spec.prefix) + methods + variant;
  const limits: Limit[] = (spec.steps.rateLimits ?? [])
    .map((limit, index) => new RouteLimit(limit, `${label}:${limit.name}`, spec.slot, index))
    .filter(({ by }) => isHere(by));
  if (countsKeys) limits.push(new KeyLimit());
  return limits.length === 0 ? undefined : new RateLimitStep(limits, parts);
}

/** A limit of one route. */
interface Limit {
  readonly by: RateKeySpec;
  /** The rule for a request; undefined if the limit does not apply to it. */
  readRule(exchange: GateExchange): NamedRule | undefined;
}

interface NamedRule extends RateRule {
  readonly fields: RuleFields;
}

/** The limit that an API key has itself, on all routes together. */
class KeyLimit implements Limit {
  readonly by: RateKeySpec = { kind: "api_key" };
  readonly #rules = new WeakMap<ApiKeySpec, NamedRule>();

  readRule({ userData: { apiKey } }: GateExchange): NamedRule | undefined {
    const perMinute = apiKey?.rateLimitRpm;
    if (apiKey === null || perMinute === undefined) return undefined;
    const known = this.#rules.get(apiKey);
    if (known !== undefined) return known;
    const fields = new RuleFields(KEY_TITLE, perMinute);
    const rule = { space: KEY_SPACE, name: KEY_TITLE, perMinute, fields };
    this.#rules.set(apiKey, rule);
    return rule;
  }
}

/** The response fields of a limit: the policy itself is RateLimit-Policy. */
class RuleFields implements PreparedField {
  readonly name = "RateLimit-Policy";
  readonly value: string;
  readonly title: string;
  /** The start of RateLimit. */
  readonly stateStart: Buffer;
  readonly #line: Buffer;

  constructor(title: string, perMinute: number) {
    this.title = title;
    this.value = `"${title}";q=${perMinute};w=${RATE_WINDOW_SECONDS}`;
    this.stateStart = Buffer.from(`RateLimit: "${title}";r=`);
    this.#line = Buffer.from(`${this.name}: ${this.value}\r\n`);
  }

  write(writer: HeadWriter): void {
    writer.raw(this.#line);
  }
}

/** The field with the requests that are left. */
class RateStateField implements PreparedField {
  readonly name = "RateLimit";
  readonly #rule: RuleFields;
  readonly #remaining: number;
  readonly #resetSeconds: number;

  constructor(rule: RuleFields, remaining: number, resetSeconds: number) {
    this.#rule = rule;
    this.#remaining = remaining;
    this.#resetSeconds = resetSeconds;
  }

  get value(): string {
    return `"${this.#rule.title}";r=${this.#remaining};t=${this.#resetSeconds}`;
  }

  write(writer: HeadWriter): void {
    writer.raw(this.#rule.stateStart);
    writer.number(this.#remaining);
    writer.raw(RESET);
    writer.number(this.#resetSeconds);
    writer.lineEnd();
  }
}

class RouteLimit implements Limit, NamedRule {
  readonly by: RateKeySpec;
  readonly space: number;
  readonly name: string;
  readonly perMinute: number;
  readonly fields: RuleFields;

  constructor({ by, name, perMinute }: RateLimitSpec, key: string, slot: number, index: number) {
    this.by = by;
    this.space = slot * RATE_LIMITS_MAX + index;
    this.name = key;
    this.perMinute = perMinute;
    this.fields = new RuleFields(name, perMinute);
  }

  readRule(): NamedRule {
    return this;
  }
}

class RateLimitStep implements Step {
  readonly #limits: readonly Limit[];
  readonly #limiter: RateLimiter;
  readonly #parts: StepParts;
  readonly #limitedAt: number;

  constructor(limits: readonly Limit[], parts: StepParts) {
    this.#limits = limits;
    this.#limiter = parts.limiter;
    this.#parts = parts;
    this.#limitedAt = parts.block.findCounter("rateLimited");
  }

  run(exchange: GateExchange): boolean | Promise<boolean> {
    return this.#runFrom(exchange, 0);
  }

  #runFrom(exchange: GateExchange, first: number): boolean | Promise<boolean> {
    for (let at = first; at < this.#limits.length; at++) {
      const limit = this.#limits[at]!;
      const rule = limit.readRule(exchange);
      if (rule === undefined) continue;
      const verdict = this.#limiter.take(this.#findKey(exchange, limit.by, rule));
      if (verdict instanceof Promise) return this.#wait(exchange, at, rule, verdict);
      this.#judge(exchange, rule, verdict);
    }
    return true;
  }

  /** The key of a request. One without the property is counted by its address: leaving it out does not avoid the limit. */
  #findKey(exchange: GateExchange, by: RateKeySpec, rule: RateRule): RateKey {
    const property = readProperty(exchange, by);
    if (property !== undefined) return this.#limiter.findKey(rule, `${by.kind}:${property}`);
    const state = exchange.userData;
    const { clientAddress: address } = state.forwarding;
    const known = state.addressKey;
    if (known !== null && known.rule === rule && known.address === address) return known;
    const key = { address, ...this.#limiter.findKey(rule, `ip:${findSubscriberNetwork(address)}`) };
    state.addressKey = key;
    return key;
  }

  async #wait(
    exchange: GateExchange,
    at: number,
    rule: NamedRule,
    late: Promise<RateVerdict>,
  ): Promise<boolean> {
    const { sequence } = exchange;
    const verdict = await late;
    if (exchange.sequence !== sequence) return false;
    this.#judge(exchange, rule, verdict);
    return this.#runFrom(exchange, at + 1);
  }

  #judge(exchange: GateExchange, limit: NamedRule, verdict: RateVerdict): void {
    const { remaining, resetSeconds, isAllowed } = verdict;
    const { responseFields } = exchange.userData;
    responseFields.addPrepared(new RateStateField(limit.fields, remaining, resetSeconds));
    responseFields.addPrepared(limit.fields);
    if (isAllowed) return;
    const { values } = this.#parts.block;
    values[this.#limitedAt] = values[this.#limitedAt]! + 1;
    throw createRetryLaterError(
      "too_many_requests",
      `The limit is ${limit.perMinute} requests per minute.`,
      resetSeconds,
    );
  }
}

function readProperty(exchange: GateExchange, by: RateKeySpec): string | undefined {
  const { caller, apiKey } = exchange.userData;
  const claims = caller.kind === "user" ? caller.claims : undefined;
  switch (by.kind) {
    case "ip":
      return undefined;
    case "api_key":
      return apiKey?.id;
    case "tenant":
      return apiKey?.tenant ?? claims?.tenant;
    case "header":
      return exchange.head.fields.find(by.name);
    case "claim":
      return readClaim(claims?.all?.[by.name]);
    default:
      return by satisfies never;
  }
}

function readClaim(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === "string" ? value : JSON.stringify(value);
}
