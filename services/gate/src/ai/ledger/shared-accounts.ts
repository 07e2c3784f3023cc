// Accounts in Redis, for all gateways. Without Redis, each gateway counts on from the last sums that it has seen.
import { createHash } from "node:crypto";
import { RedisClient, withDeadline } from "@platform/redis";
import { RESERVE_SCRIPT, SETTLE_SCRIPT, spentKey, SUM_PART, tokensKey } from "./account-scripts.ts";

/** Longest wait for Redis in the path of a request. */
const DEADLINE_MS = 50;
/** Time without Redis after it has missed the deadline, so that it does not delay every request. */
const PAUSE_MS = 1_000;
const RECONCILE_MS = 250;
/** Tenants with changes that Redis does not have. */
const TENANTS_MAX = 10_000;

/** Options of {@link SharedAccounts}. */
export interface SharedAccountsOptions {
  /** Name of this gateway, the same after a restart. */
  readonly gateway: string;
  readonly readNowMs: () => number;
  /** A request was counted without Redis. */
  readonly onLocal: () => void;
  readonly log: (
    level: "warn" | "info",
    msg: string,
    fields: Record<string, string | number>,
  ) => void;
}

/** A limit by tokens. */
interface SharedWindow {
  /** Property by which it counts, unique for its route and value. */
  readonly key: string;
  readonly tokens: number;
  readonly limit: number;
}

/** A request that is to be reserved. */
export interface SharedRequest {
  readonly tenant: string;
  readonly day: number;
  readonly pico: bigint;
  /** Budget of the day; undefined without one. */
  readonly limit: bigint | undefined;
  readonly windows: readonly SharedWindow[];
}

/** A reservation in Redis. */
export interface SharedReservation {
  readonly day: string;
  readonly windows: readonly string[];
  readonly second: number;
}

/** Outcome of a reservation. */
export type SharedVerdict =
  | {
      readonly kind: "reserved";
      readonly reservation: SharedReservation;
      /** Spending of the other gateways. */
      readonly others: bigint;
    }
  | { readonly kind: "no-money"; readonly others: bigint }
  | {
      readonly kind: "no-tokens";
      /** Index of the limit. */
      readonly window: number;
      readonly remaining: number;
      readonly resetSeconds: number;
    }
  /** Redis did not count the request: it is counted here. */
  | { readonly kind: "local" };

const LOCAL: SharedVerdict = { kind: "local" };

/** The accounts of one worker in Redis. */
export class SharedAccounts {
  readonly #options: SharedAccountsOptions;
  /** Spending that Redis does not have yet, by the key of the day. */
  readonly #missing = new Map<string, bigint>();
  #redis: RedisClient | undefined;
  #url: string | undefined;
  #pausedUntilMs = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SharedAccountsOptions) {
    this.#options = options;
  }

  /** Uses the Redis server at `url` from now on, or none. */
  setRedis(url: string | undefined): void {
    if (url === this.#url) return;
    this.close();
    this.#url = url;
    const { log } = this.#options;
    if (url === undefined) return;
    this.#redis = new RedisClient({
      url,
      onFailure: ({ message: error }) =>
        log("warn", "Redis is not available, budgets of models apply to this gateway alone", {
          error,
        }),
      onRecovery: () => log("info", "Redis is available again, budgets of models are shared", {}),
    });
  }

  /** True if accounts are shared, whether Redis answers or not. */
  get isShared(): boolean {
    return this.#redis !== undefined;
  }

  /** Reserves tokens and money for all gateways. Never rejects. */
  async reserve(request: SharedRequest): Promise<SharedVerdict> {
    const redis = this.#redis;
    const { gateway, readNowMs, onLocal } = this.#options;
    if (redis === undefined || !redis.isReady || readNowMs() < this.#pausedUntilMs) {
      onLocal();
      return LOCAL;
    }
    const { tenant, day, pico, limit, windows } = request;
    const keys = [spentKey(tenant, day), ...windows.map(({ key }) => tokensKey(shorten(key)))];
    const values = [gateway, String(pico), limit === undefined ? "" : String(limit)];
    for (const { tokens, limit: most } of windows) values.push(String(tokens), String(most));
    const reply = RESERVE_SCRIPT.run(redis, keys, values);
    try {
      return this.#read(await withDeadline(reply, DEADLINE_MS), keys);
    } catch (error) {
      this.#pause(error as Error);
      // A reply that comes too late has reserved in Redis, too, what is now counted here.
      reply.then(
        (late) => {
          if (this.#read(late, keys).kind === "reserved") this.#miss(keys[0]!, -pico);
        },
        () => undefined,
      );
      onLocal();
      return LOCAL;
    }
  }

  /** Replaces what was reserved by what was used: the differences of money, and of each limit's tokens. */
  settle(
    { day, windows, second }: SharedReservation,
    pico: bigint,
    tokens: readonly number[],
  ): void {
    const redis = this.#redis;
    if (redis === undefined) {
      this.#miss(day, pico);
      return;
    }
    const values = [this.#options.gateway, String(pico), String(second), ...tokens.map(String)];
    SETTLE_SCRIPT.run(redis, [day, ...windows], values).catch(() => this.#miss(day, pico));
  }

  /** Counts money that was spent, or given back, without Redis. */
  addLocal(tenant: string, day: number, pico: bigint): void {
    if (this.#url !== undefined) this.#miss(spentKey(tenant, day), pico);
  }

  /** Closes the connection to Redis. */
  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#redis?.close();
    this.#redis = undefined;
  }

  #read(reply: unknown, [day, ...windows]: readonly string[]): SharedVerdict {
    if (!Array.isArray(reply)) throw new Error("an unknown reply");
    const [isReserved, second, high, low, own] = reply as [number, number, number, number, string];
    if (isReserved === 0 && second > 0)
      return { kind: "no-tokens", window: second - 1, remaining: high, resetSeconds: low };
    const others = BigInt(high) * SUM_PART + BigInt(low) - BigInt(own);
    if (isReserved === 0) return { kind: "no-money", others };
    return { kind: "reserved", reservation: { day: day!, windows, second }, others };
  }

  #miss(day: string, pico: bigint): void {
    if (pico === 0n || (!this.#missing.has(day) && this.#missing.size >= TENANTS_MAX)) return;
    this.#missing.set(day, (this.#missing.get(day) ?? 0n) + pico);
    this.#timer ??= setTimeout(() => this.#reconcile(), RECONCILE_MS);
    this.#timer.unref();
  }

  #reconcile(): void {
    this.#timer = undefined;
    const redis = this.#redis;
    const missing = [...this.#missing];
    if (redis?.isReady === true) {
      this.#missing.clear();
      for (const [day, pico] of missing) {
        const values = [this.#options.gateway, String(pico), "0"];
        SETTLE_SCRIPT.run(redis, [day], values).catch(() => this.#miss(day, pico));
      }
    } else if (this.#url !== undefined && missing.length > 0) {
      this.#timer = setTimeout(() => this.#reconcile(), RECONCILE_MS);
      this.#timer.unref();
    }
  }

  #pause({ message: error }: Error): void {
    const { readNowMs, log } = this.#options;
    const nowMs = readNowMs();
    if (nowMs < this.#pausedUntilMs) return;
    this.#pausedUntilMs = nowMs + PAUSE_MS;
    const msg = "Redis did not count a request to a model, budgets apply to this gateway alone";
    log("warn", msg, { error, pause_ms: PAUSE_MS });
  }
}

function shorten(key: string): string {
  return createHash("sha256").update(key).digest("base64url");
}
