// Reserves what a request may cost before it goes up, and settles it when it has ended: budgets and limits by tokens.
import { createHmac } from "node:crypto";
import { PlatformError } from "@platform/kernel/errors";
import {
  type AiAccount,
  type AiAccounts,
  type AiBudget,
  DAY_MS,
  readAccountTag,
  readDay,
  type TakenTokens,
  TOKEN_WINDOW_SECONDS,
  type TokenWindows,
} from "../../shared-state/index.ts";
import type { ModelCall, SettledCall } from "../meter/model-call.ts";
import { formatUsd } from "../price/price-table.ts";
import { sumTokens } from "../usage/token-usage.ts";
import type { LedgerWriter } from "./ledger-writer.ts";

/** Tenant of requests without one. */
export const ANONYMOUS_TENANT = "anonymous";
/** Tenants and keys of limits whose digests are kept. */
const TAGS_MAX = 10_000;

/** Options of {@link Accounting}. */
export interface AccountingOptions {
  readonly accounts: AiAccounts;
  readonly windows: TokenWindows;
  readonly writer: LedgerWriter;
  /** Seed of hashes in shared memory, equal for all threads and unknown to clients. */
  readonly seed: number;
  /** Milliseconds of the clock that all workers share. */
  readonly readNowMs: () => number;
  /** Milliseconds since 1970. */
  readonly readTimeMs: () => number;
}

/** A request that is to be reserved. */
export interface ReserveRequest {
  readonly call: ModelCall;
  readonly tenant: string;
  readonly routeLabel: string;
  /** Limit of the route, and the property by which it counts. */
  readonly routeLimit: { readonly perMinute: number; readonly by: string } | undefined;
}

/** Accounting of one worker. */
export class Accounting {
  readonly #options: AccountingOptions;
  readonly #budgets = new Map<string, AiBudget>();
  readonly #tags = new Map<string, bigint>();

  constructor(options: AccountingOptions) {
    this.#options = options;
  }

  /** Replaces all budgets. */
  setBudgets(budgets: readonly AiBudget[]): void {
    this.#budgets.clear();
    for (const budget of budgets) this.#budgets.set(budget.tenant, budget);
  }

  /**
   * Reserves the most that a request may use. Throws `rate_limit_exceeded`, `insufficient_quota` or `model_price_unknown` if
   * it may not go up, and `unavailable` if it cannot be recorded.
   */
  reserve({ call, tenant, routeLabel, routeLimit }: ReserveRequest): Reservation {
    const budget = this.#budgets.get(tenant);
    const { price, request, reserved, reservedPico } = call;
    if (budget?.maxPicoPerDay !== undefined && price === undefined)
      throw refuseModel(request.model);
    const reservation = new Reservation(this.#options, tenant);
    const tokens = sumTokens(reserved);
    try {
      if (routeLimit !== undefined) {
        const key = `route ${routeLabel}\n${routeLimit.by}`;
        reservation.takeTokens(this.#findTag(key), tokens, routeLimit.perMinute, "route");
      }
      if (budget?.maxTokensPerMinute !== undefined) {
        const key = `tenant ${tenant}`;
        reservation.takeTokens(this.#findTag(key), tokens, budget.maxTokensPerMinute, "tenant");
      }
      const account = this.#options.accounts.find(this.#findTag(accountKey(tenant)));
      reservation.takeMoney(account, reservedPico, budget?.maxPicoPerDay);
      reservation.record({ route: routeLabel, model: request.model, tokens });
    } catch (error) {
      reservation.withdraw();
      throw error;
    }
    return reservation;
  }

  /** Records a request that is answered from stored answers: it reserves nothing, but counts as saved. */
  recordHit({ call, tenant, routeLabel }: Omit<ReserveRequest, "routeLimit">): void {
    const reservation = new Reservation(this.#options, tenant);
    try {
      reservation.record({ route: routeLabel, model: call.request.model, tokens: 0 });
    } catch {
      // The answer is there whether its savings can be recorded or not.
      return;
    }
    call.release = (settled) => reservation.settle(settled);
  }

  #findTag(key: string): bigint {
    const known = this.#tags.get(key);
    if (known !== undefined) return known;
    if (this.#tags.size >= TAGS_MAX) this.#tags.clear();
    const tag = makeAccountTag(key, this.#options.seed);
    this.#tags.set(key, tag);
    return tag;
  }
}

/** The tag of a key in shared memory. */
export function makeAccountTag(key: string, seed: number): bigint {
  return readAccountTag(createHmac("sha256", String(seed)).update(key).digest());
}

/** The key of a tenant's account. */
export function accountKey(tenant: string): string {
  return `account ${tenant}`;
}

/** Tokens and money that one request has reserved. */
export class Reservation {
  readonly #options: AccountingOptions;
  readonly #tenant: string;
  readonly #day: number;
  readonly #taken: { tokens: TakenTokens; reserved: number }[] = [];
  #account: AiAccount | undefined;
  #pico = 0n;
  #id = 0;

  constructor(options: AccountingOptions, tenant: string) {
    this.#options = options;
    this.#tenant = tenant;
    this.#day = readDay(options.readTimeMs());
  }

  /** Takes tokens of a limit, at most all of it. */
  takeTokens(tag: bigint, tokens: number, limit: number, owner: "route" | "tenant"): void {
    const { windows, readNowMs } = this.#options;
    const wanted = Math.min(tokens, limit);
    const { taken, remaining, resetSeconds } =
      limit === 0
        ? { taken: undefined, remaining: 0, resetSeconds: TOKEN_WINDOW_SECONDS }
        : windows.take(tag, wanted, limit, readNowMs());
    if (taken === undefined) throw refuseTokens(owner, limit, remaining, resetSeconds);
    this.#taken.push({ tokens: taken, reserved: wanted });
  }

  /** Adds to the spending of the day. */
  takeMoney(account: AiAccount | undefined, pico: bigint, limit: bigint | undefined): void {
    const { accounts, readTimeMs } = this.#options;
    // Requests that cost nothing need no budget.
    if (limit === undefined || pico === 0n) {
      if (account !== undefined) accounts.add(account, this.#day, pico);
    } else if (account === undefined || !accounts.reserve(account, this.#day, pico, limit)) {
      throw refuseMoney(limit, readTimeMs());
    }
    this.#account = account;
    this.#pico = pico;
  }

  /** Writes the reservation to the ledger. */
  record({ route, model, tokens }: { route: string; model: string; tokens: number }): void {
    try {
      this.#id = this.#options.writer.reserve({
        day: this.#day,
        tenant: this.#tenant,
        route,
        model,
        pico: this.#pico.toString(),
        tokens,
      });
    } catch (cause) {
      const detail = "The gateway cannot record requests to models at the moment.";
      throw new PlatformError("unavailable", detail, { cause });
    }
  }

  /** Gives everything back: the request does not go up. */
  withdraw(): void {
    this.#change(0, 0n);
  }

  /** Replaces what was reserved by what was used. */
  settle({ usage, costPico, savedPico }: SettledCall): void {
    const tokens = sumTokens(usage);
    this.#change(tokens, costPico);
    this.#options.writer.settle({
      id: this.#id,
      pico: costPico.toString(),
      tokens,
      ...(savedPico === 0n ? {} : { saved: savedPico.toString() }),
    });
  }

  #change(tokens: number, pico: bigint): void {
    const { accounts, windows } = this.#options;
    for (const { tokens: taken } of this.#taken) windows.settle(taken, tokens);
    if (this.#account !== undefined) accounts.add(this.#account, this.#day, pico - this.#pico);
  }
}

function refuseModel(model: string): PlatformError {
  const name = model === "" ? "A request without a model" : `The model ${JSON.stringify(model)}`;
  const detail = `${name} has no price, which a tenant with a budget needs.`;
  return new PlatformError("model_price_unknown", detail, { fields: { param: "model" } });
}

function refuseTokens(
  owner: "route" | "tenant",
  limit: number,
  remaining: number,
  resetSeconds: number,
): PlatformError {
  const title = owner === "route" ? "tokens" : "tenant-tokens";
  const detail = `The limit of ${limit} tokens per minute for this ${owner} would be exceeded.`;
  return new PlatformError("rate_limit_exceeded", detail, {
    headers: {
      "Retry-After": String(Math.max(1, resetSeconds)),
      RateLimit: `"${title}";r=${remaining};t=${resetSeconds}`,
      "RateLimit-Policy": `"${title}";q=${limit};w=${TOKEN_WINDOW_SECONDS}`,
    },
  });
}

function refuseMoney(limit: bigint, nowMs: number): PlatformError {
  const seconds = Math.max(1, Math.ceil((DAY_MS - (nowMs % DAY_MS)) / 1_000));
  const detail = `The budget of ${formatUsd(limit)} USD per day would be exceeded.`;
  return new PlatformError("insufficient_quota", detail, {
    // SDKs repeat requests with status 429 otherwise.
    headers: { "Retry-After": String(seconds), "x-should-retry": "false" },
  });
}
