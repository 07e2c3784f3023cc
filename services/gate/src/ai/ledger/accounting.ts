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
import type { SharedAccounts, SharedReservation } from "./shared-accounts.ts";

/** Tenant of requests without one. */
export const ANONYMOUS_TENANT = "anonymous";
/** Tenants and keys of limits whose digests are kept. */
const TAGS_MAX = 10_000;

/** Options of {@link Accounting}. */
export interface AccountingOptions {
  readonly accounts: AiAccounts;
  readonly windows: TokenWindows;
  readonly writer: LedgerWriter;
  /** Accounts of all gateways. */
  readonly shared: SharedAccounts;
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

/** A limit by tokens. */
interface TokenLimit {
  readonly key: string;
  readonly perMinute: number;
  readonly owner: "route" | "tenant";
}

/** The most that a request may use, and what it may not exceed. */
interface Wanted {
  readonly tokens: number;
  readonly pico: bigint;
  readonly limits: readonly TokenLimit[];
  readonly maxPico: bigint | undefined;
  /** Spending of other gateways that counts against the budget. */
  readonly others: bigint;
}

/** Accounting of one worker. */
export class Accounting {
  readonly #options: AccountingOptions;
  readonly #budgets = new Map<string, AiBudget>();
  readonly #tags = new Map<string, bigint>();

  constructor(options: AccountingOptions) {
    this.#options = options;
  }

  /** Shares accounts by the Redis server at `url` from now on, or not. */
  setRedis(url: string | undefined): void {
    this.#options.shared.setRedis(url);
  }

  /** Closes the connection to Redis. */
  close(): void {
    this.#options.shared.close();
  }

  /** Replaces all budgets. */
  setBudgets(budgets: readonly AiBudget[]): void {
    this.#budgets.clear();
    for (const budget of budgets) this.#budgets.set(budget.tenant, budget);
  }

  /**
   * Reserves the most that a request may use. Throws or rejects with `rate_limit_exceeded`, `insufficient_quota` or
   * `model_price_unknown` if it may not go up, and with `unavailable` if it cannot be recorded. A promise only if accounts are
   * shared.
   */
  reserve(request: ReserveRequest): Reservation | Promise<Reservation> {
    const { call, tenant, routeLabel, routeLimit } = request;
    const budget = this.#budgets.get(tenant);
    if (budget?.maxPicoPerDay !== undefined && call.price === undefined)
      throw refuseModel(call.request.model);
    // Nothing is allowed then, not even what costs nothing.
    if (budget?.maxPicoPerDay === 0n) throw refuseMoney(0n, this.#options.readTimeMs());
    const limits: TokenLimit[] = [];
    if (routeLimit !== undefined) {
      const key = `route ${routeLabel}\n${routeLimit.by}`;
      limits.push({ key, perMinute: routeLimit.perMinute, owner: "route" });
    }
    if (budget?.maxTokensPerMinute !== undefined) {
      const key = `tenant ${tenant}`;
      limits.push({ key, perMinute: budget.maxTokensPerMinute, owner: "tenant" });
    }
    const wanted: Wanted = {
      tokens: sumTokens(call.reserved),
      pico: call.reservedPico,
      limits,
      maxPico: budget?.maxPicoPerDay,
      others: 0n,
    };
    const reservation = new Reservation(this.#options, tenant);
    return this.#options.shared.isShared
      ? this.#reserveShared(request, reservation, wanted)
      : this.#reserveHere(request, reservation, wanted, undefined);
  }

  async #reserveShared(
    request: ReserveRequest,
    reservation: Reservation,
    wanted: Wanted,
  ): Promise<Reservation> {
    const { tenant } = request;
    const { day } = reservation;
    const { shared } = this.#options;
    const { tokens, pico, limits, maxPico } = wanted;
    for (const { owner, perMinute } of limits)
      if (perMinute === 0) throw refuseTokens(owner, 0, 0, TOKEN_WINDOW_SECONDS);
    const verdict = await shared.reserve({
      tenant,
      day,
      pico,
      limit: maxPico,
      windows: limits.map(({ key, perMinute }) => ({
        key,
        tokens: Math.min(tokens, perMinute),
        limit: perMinute,
      })),
    });
    const account = this.#options.accounts.find(this.#findTag(accountKey(tenant)));
    if ("others" in verdict && account !== undefined)
      this.#options.accounts.setOthers(account, day, verdict.others);
    switch (verdict.kind) {
      case "reserved":
        return this.#reserveHere(request, reservation, wanted, verdict.reservation);
      case "local": {
        const others = account === undefined ? 0n : this.#options.accounts.readOthers(account, day);
        return this.#reserveHere(request, reservation, { ...wanted, others }, undefined);
      }
      case "no-money":
        throw refuseMoney(maxPico ?? 0n, this.#options.readTimeMs());
      case "no-tokens": {
        const { owner, perMinute } = limits[verdict.window]!;
        throw refuseTokens(owner, perMinute, verdict.remaining, verdict.resetSeconds);
      }
      default:
        return verdict satisfies never;
    }
  }

  // Also counted here if Redis has admitted it: these are the sums of this gateway.
  #reserveHere(
    { call, tenant, routeLabel }: ReserveRequest,
    reservation: Reservation,
    { tokens, pico, limits, maxPico, others }: Wanted,
    shared: SharedReservation | undefined,
  ): Reservation {
    reservation.shared = shared;
    try {
      for (const limit of limits) reservation.takeTokens(this.#findTag(limit.key), tokens, limit);
      const account = this.#options.accounts.find(this.#findTag(accountKey(tenant)));
      reservation.takeMoney(account, pico, shared === undefined ? maxPico : undefined, others);
      reservation.record({ route: routeLabel, model: call.request.model, tokens });
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
  /** UTC day to which it belongs. */
  readonly day: number;
  /** Set if Redis has counted it. */
  shared: SharedReservation | undefined;
  readonly #taken: { tokens: TakenTokens; reserved: number }[] = [];
  #account: AiAccount | undefined;
  #pico = 0n;
  #id = 0;

  constructor(options: AccountingOptions, tenant: string) {
    this.#options = options;
    this.#tenant = tenant;
    this.day = readDay(options.readTimeMs());
  }

  /** Takes tokens of a limit, at most all of it. */
  takeTokens(tag: bigint, tokens: number, { perMinute: limit, owner }: TokenLimit): void {
    const { windows, readNowMs } = this.#options;
    const wanted = Math.min(tokens, limit);
    const most = this.shared === undefined ? limit : Number.MAX_SAFE_INTEGER;
    const { taken, remaining, resetSeconds } =
      limit === 0
        ? { taken: undefined, remaining: 0, resetSeconds: TOKEN_WINDOW_SECONDS }
        : windows.take(tag, wanted, most, readNowMs());
    if (taken === undefined) throw refuseTokens(owner, limit, remaining, resetSeconds);
    this.#taken.push({ tokens: taken, reserved: wanted });
  }

  /** Adds to the spending of the day. */
  takeMoney(
    account: AiAccount | undefined,
    pico: bigint,
    limit: bigint | undefined,
    others: bigint,
  ): void {
    const { accounts, shared, readTimeMs } = this.#options;
    // Requests that cost nothing need no budget.
    if (limit === undefined || pico === 0n) {
      if (account !== undefined) accounts.add(account, this.day, pico);
    } else if (
      account === undefined ||
      !accounts.reserve(account, this.day, pico, limit - others)
    ) {
      throw refuseMoney(limit, readTimeMs());
    }
    this.#account = account;
    this.#pico = pico;
    if (this.shared === undefined) shared.addLocal(this.#tenant, this.day, pico);
  }

  /** Writes the reservation to the ledger. */
  record({ route, model, tokens }: { route: string; model: string; tokens: number }): void {
    try {
      this.#id = this.#options.writer.reserve({
        day: this.day,
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
    const { accounts, windows, shared } = this.#options;
    for (const { tokens: taken } of this.#taken) windows.settle(taken, tokens);
    const change = pico - this.#pico;
    if (this.#account !== undefined) accounts.add(this.#account, this.day, change);
    if (this.shared === undefined) shared.addLocal(this.#tenant, this.day, change);
    else {
      const changes = this.#taken.map(({ reserved }) => tokens - reserved);
      shared.settle(this.shared, change, changes);
    }
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
