// The ledger of AI routes: adds up the files of all workers, and keeps what tenants have spent by day, route and model.
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "@platform/kernel/log";
import { type RepeatingTimer, every } from "@platform/kernel/time";
import { createStateFile, type StateFile } from "../access/state-file.ts";
import { LedgerFiles } from "../ai/ledger/ledger-files.ts";
import { accountKey, makeAccountTag } from "../ai/ledger/accounting.ts";
import { type AiAccounts, DAY_MS, readDay } from "../shared-state/index.ts";
import { type DaySums, LedgerDays } from "./ledger-days.ts";
import { type LedgerSnapshot, ledgerSnapshotSchema } from "./ledger-snapshot.ts";

const SNAPSHOT_MS = 60_000;
/** Days after which the sums of a day move to a file of their own. */
const OPEN_DAYS = 2;
/** The file of a day, and its copy. */
const ARCHIVE = /^\.?(\d{4}-\d{2}-\d{2})\.json(?:\.copy)?$/;
/** Days whose sums are kept. */
export const LEDGER_DAYS_MAX = 400;

/** Options of {@link AiLedger}. */
export interface AiLedgerOptions {
  /** Folder of the gateway's state. */
  readonly folder: string;
  readonly accounts: AiAccounts;
  /** Seed of the tags of accounts. */
  readonly seed: number;
  readonly readTimeMs: () => number;
  readonly log: Logger;
  /** True for tenants that always have sums of their own. */
  readonly hasBudget: (tenant: string) => boolean;
}

/** The ledger of one gateway. */
export class AiLedger {
  readonly days: LedgerDays;
  /** Called after a correction of what a tenant has spent on a day. */
  onAdjusted: ((day: number, adjusted: { tenant: string; pico: bigint }) => void) | undefined;
  readonly #options: AiLedgerOptions;
  readonly #folder: string;
  readonly #files: LedgerFiles;
  readonly #state: StateFile<LedgerSnapshot>;
  #writing: Promise<void> = Promise.resolve();
  #timer: RepeatingTimer | undefined;
  #isChanged = false;
  /** Day on which expired archives were removed last. */
  #expiredDay = -1;

  constructor(options: AiLedgerOptions) {
    const { folder, log, hasBudget } = options;
    this.#options = options;
    this.#folder = join(folder, "ai");
    this.days = new LedgerDays(hasBudget);
    this.#files = new LedgerFiles({
      folder: this.#folder,
      onSettled: (reserved, settled) => {
        this.#isChanged = true;
        this.days.add(reserved, settled);
      },
      onFault: (file, fault) => log.error("the AI ledger is damaged", { file, fault }),
    });
    this.#state = createStateFile(
      join(this.#folder, "ledger.json"),
      ledgerSnapshotSchema,
      (fault) => log.warn("state repaired", { fault }),
    );
  }

  /** Folder of the workers' files. */
  get folder(): string {
    return this.#folder;
  }

  /**
   * Reads what is stored, counts reservations of a former process in full, and puts the spending of today into shared memory.
   * Throws an Error that names the file if the state is damaged.
   */
  async open(): Promise<void> {
    const stored = await this.#state.read();
    if (stored !== undefined) {
      this.days.restore(stored.days);
      this.#files.restore(stored.instances);
    }
    if (this.#files.read()) await this.#store();
    const { accounts, seed, readTimeMs } = this.#options;
    const day = readDay(readTimeMs());
    for (const { tenant, pico } of this.days.listSpent(day)) {
      const account = accounts.find(makeAccountTag(accountKey(tenant), seed));
      if (account !== undefined) accounts.add(account, day, pico);
    }
  }

  /** Starts to add up regularly. */
  start(): void {
    const { log } = this.#options;
    this.#timer = every(
      SNAPSHOT_MS,
      () => this.save(),
      (error) => log.error("cannot store the AI ledger", { error: String(error) }),
    );
  }

  /** A worker that writes files has started. */
  addInstance(instance: string): void {
    this.#files.addLive(instance);
  }

  /** A worker has ended: its reservations that were not settled count in full. */
  removeInstance(instance: string): void {
    this.#files.removeLive(instance);
    this.refresh();
  }

  /** Adds up what workers have written so far. */
  refresh(): void {
    if (this.#files.read()) this.#isChanged = true;
  }

  /** Reserved cost of a tenant's requests that have not ended. */
  readReserved(tenant: string, day: number): bigint {
    return this.#files.sumReserved(tenant, day);
  }

  /** Settled and reserved cost of all tenants on a day. */
  listSpending(day: number): { tenant: string; pico: bigint }[] {
    this.refresh();
    const sums = new Map(this.days.listSpent(day).map(({ tenant, pico }) => [tenant, pico]));
    for (const { tenant, pico } of this.#files.listReserved(day))
      sums.set(tenant, (sums.get(tenant) ?? 0n) + pico);
    return [...sums].map(([tenant, pico]) => ({ tenant, pico }));
  }

  /** Corrects what a tenant has spent today; durable when this resolves. */
  async adjust(tenant: string, pico: bigint): Promise<void> {
    const day = readDay(this.#options.readTimeMs());
    this.#adjust(tenant, day, pico);
    try {
      await this.save();
    } catch (error) {
      // The caller is told that it has failed, and would correct twice.
      this.#adjust(tenant, day, -pico);
      throw error;
    }
  }

  #adjust(tenant: string, day: number, pico: bigint): void {
    const { accounts, seed } = this.#options;
    this.days.adjust(tenant, day, pico);
    const account = accounts.find(makeAccountTag(accountKey(tenant), seed));
    if (account !== undefined) accounts.add(account, day, pico);
    this.onAdjusted?.(day, { tenant, pico });
    this.#isChanged = true;
  }

  /** Sums of days from `from` to `to`. */
  async listDays(from: number, to: number): Promise<DaySums[]> {
    this.refresh();
    const archived: DaySums[] = [];
    const oldest = readDay(this.#options.readTimeMs()) - LEDGER_DAYS_MAX;
    for (let day = Math.max(from, oldest); day <= to; day++) {
      if (this.days.has(day) || day > readDay(this.#options.readTimeMs()) - OPEN_DAYS) continue;
      const sums = await this.#archive(day).read();
      if (sums !== undefined) archived.push(sums);
    }
    return [...archived, ...this.days.list(from, to)];
  }

  /** Stores the sums, and removes files that are part of them. */
  save(): Promise<void> {
    const next = this.#writing.then(async () => {
      this.refresh();
      if (!this.#isChanged) return;
      this.#isChanged = false;
      await this.#store();
    });
    this.#writing = next.catch(() => {
      this.#isChanged = true;
    });
    return next;
  }

  /** Stops adding up and stores the last sums. */
  async close(): Promise<void> {
    await this.#timer?.stop();
    await this.save();
  }

  async #store(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const today = readDay(this.#options.readTimeMs());
    // Archived before they leave the snapshot: a crash in between writes them again.
    const closed = this.days.listBefore(today - OPEN_DAYS);
    for (const sums of closed) await this.#archive(sums.day).write(sums);
    this.days.drop(closed.map(({ day }) => day));
    const finished = this.#files.listFinished();
    await this.#state.write({ days: this.days.list(0, today + 1), instances: this.#files.list() });
    await this.#files.remove(finished);
    await this.#removeExpired(today);
  }

  // Also those of days on which the gateway did not run.
  async #removeExpired(today: number): Promise<void> {
    if (this.#expiredDay === today) return;
    const oldest = writeDate(today - LEDGER_DAYS_MAX);
    const archive = join(this.#folder, "days");
    for (const file of await readdir(archive).catch(() => [])) {
      const [, date] = ARCHIVE.exec(file) ?? [];
      if (date !== undefined && date < oldest) await rm(join(archive, file), { force: true });
    }
    this.#expiredDay = today;
  }

  #archivePath(day: number): string {
    return join(this.#folder, "days", `${writeDate(day)}.json`);
  }

  #archive(day: number): StateFile<DaySums> {
    const { log } = this.#options;
    return createStateFile(
      this.#archivePath(day),
      ledgerSnapshotSchema.shape.days.element,
      (fault) => log.warn("state repaired", { fault }),
    );
  }
}

function writeDate(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}
