// This gateway's spending in Redis: raised after a restart to what its ledger says, and corrected by adjustments.
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Logger } from "@platform/kernel/log";
import { RedisClient, type RedisScript } from "@platform/redis";
import { z } from "zod";
import { createEphemeralState, createStateFile } from "../access/state-file.ts";
import { RAISE_SCRIPT, SETTLE_SCRIPT, spentKey } from "../ai/ledger/account-scripts.ts";

const RETRY_MS = 500;
/** Workers have written by then what they have counted without Redis. */
const RAISE_AFTER_MS = 1_000;

/** Spending of a tenant. */
export interface TenantSpending {
  readonly tenant: string;
  readonly pico: bigint;
}

/** Options of {@link SharedSpending}. */
export interface SharedSpendingOptions {
  readonly url: string;
  /** Name of this gateway; see {@link readGatewayName}. */
  readonly gateway: string;
  /** The UTC day, and what this gateway has reserved and settled on it. */
  readonly readSpending: () => {
    readonly day: number;
    readonly spending: readonly TenantSpending[];
  };
  readonly log: Logger;
}

/** Reads the name of this gateway in Redis, which it has once and for all, or chooses one. */
export async function readGatewayName(
  folder: string,
  isEphemeral: boolean,
  log: Logger,
): Promise<string> {
  const path = join(folder, "ai", "gateway.json");
  const stored = createStateFile(path, z.string(), (fault) =>
    log.warn("state repaired", { fault }),
  );
  const file = isEphemeral ? createEphemeralState(stored) : stored;
  const known = await file.read();
  if (known !== undefined) return known;
  const name = randomUUID();
  await file.write(name);
  return name;
}

/** Writes to Redis, and tries again until it has succeeded. */
export class SharedSpending {
  readonly #options: SharedSpendingOptions;
  readonly #redis: RedisClient;
  #open: { script: RedisScript; key: string; values: string[] }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #raising: NodeJS.Timeout | undefined;

  constructor(options: SharedSpendingOptions) {
    const { url, log } = options;
    this.#options = options;
    this.#redis = new RedisClient({
      url,
      onFailure: ({ message: error }) => log.debug("Redis is not available", { error }),
      // It may have lost its data.
      onRecovery: () => {
        this.#raising = setTimeout(() => this.raise(), RAISE_AFTER_MS);
        this.#raising.unref();
      },
    });
  }

  /** Raises the sums of the day: what this gateway has spent before it was restarted counts. */
  raise(): void {
    const { day, spending } = this.#options.readSpending();
    for (const { tenant, pico } of spending)
      this.#write(RAISE_SCRIPT, spentKey(tenant, day), [String(pico)]);
  }

  /** Adds to the sum of a tenant. */
  add(day: number, { tenant, pico }: TenantSpending): void {
    this.#write(SETTLE_SCRIPT, spentKey(tenant, day), [String(pico), "0"]);
  }

  /** Closes the connection. */
  close(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#raising);
    this.#redis.close();
  }

  #write(script: RedisScript, key: string, values: readonly string[]): void {
    this.#open.push({ script, key, values: [this.#options.gateway, ...values] });
    this.#timer ??= setTimeout(() => void this.#flush(), 0);
  }

  async #flush(): Promise<void> {
    const open = this.#open;
    this.#open = [];
    for (const write of open) {
      try {
        await write.script.run(this.#redis, [write.key], write.values);
      } catch {
        this.#open.push(write);
      }
    }
    this.#timer = undefined;
    if (this.#open.length === 0) return;
    this.#timer = setTimeout(() => void this.#flush(), RETRY_MS);
    this.#timer.unref();
  }
}
