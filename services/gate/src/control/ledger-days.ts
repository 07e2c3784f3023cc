// Sums of the AI ledger by day, tenant, route and model.
import type { ReservedRecord, SettledRecord } from "../ai/ledger/ledger-record.ts";
import type { DaySums, LedgerSums } from "./ledger-snapshot.ts";

export type { DaySums, LedgerSums } from "./ledger-snapshot.ts";

/** Tenants with sums of their own; those that come later are counted together. */
const TENANTS_MAX = 10_000;
/** Models of a tenant on a route that are told apart. */
const MODELS_MAX = 200;
/** Tenant and model of what is counted together. */
const OTHER = "other";
/** Route of corrections. */
export const ADJUSTMENT = "(adjustment)";

interface Sums {
  requests: number;
  tokens: number;
  pico: bigint;
  saved: bigint;
}

/** One day: sums by tenant, then by route and model. */
type Book = Map<string, Map<string, Map<string, Sums>>>;

/** The days that are not archived. */
export class LedgerDays {
  readonly #hasBudget: (tenant: string) => boolean;
  readonly #books = new Map<number, Book>();

  constructor(hasBudget: (tenant: string) => boolean) {
    this.#hasBudget = hasBudget;
  }

  /** Adds a request; without a result its reservation counts in full. */
  add(reserved: Omit<ReservedRecord, "k" | "id">, settled: SettledRecord | undefined): void {
    const sums = this.#find(reserved.day, reserved.tenant, reserved.route, reserved.model);
    sums.requests++;
    sums.tokens += settled?.tokens ?? reserved.tokens;
    sums.pico += BigInt(settled?.pico ?? reserved.pico);
    sums.saved += BigInt(settled?.saved ?? "0");
  }

  /** Corrects the spending of a tenant. */
  adjust(tenant: string, day: number, pico: bigint): void {
    this.#find(day, tenant, ADJUSTMENT, "").pico += pico;
  }

  /** True if the day is not archived. */
  has(day: number): boolean {
    return this.#books.has(day);
  }

  /** Spending of each tenant on a day. */
  listSpent(day: number): { tenant: string; pico: bigint }[] {
    return [...(this.#books.get(day) ?? [])].map(([tenant, routes]) => {
      let pico = 0n;
      for (const models of routes.values()) for (const sums of models.values()) pico += sums.pico;
      return { tenant, pico };
    });
  }

  /** Spending of a tenant on a day. */
  readSpent(tenant: string, day: number): bigint {
    const spent = this.listSpent(day).find((one) => one.tenant === tenant);
    return spent?.pico ?? 0n;
  }

  /** Sums from one day to another. */
  list(from: number, to: number): DaySums[] {
    return [...this.#books]
      .filter(([day]) => day >= from && day <= to)
      .map(([day, book]) => ({ day, sums: listSums(book) }));
  }

  /** Sums of the days before `day`. */
  listBefore(day: number): DaySums[] {
    return this.list(0, day - 1);
  }

  /** Forgets days, which are archived. */
  drop(days: readonly number[]): void {
    for (const day of days) this.#books.delete(day);
  }

  /** Adds stored sums. */
  restore(days: readonly DaySums[]): void {
    for (const { day, sums } of days) {
      for (const { tenant, route, model, requests, tokens, pico, saved } of sums) {
        const found = this.#find(day, tenant, route, model);
        found.requests += requests;
        found.tokens += tokens;
        found.pico += BigInt(pico);
        found.saved += BigInt(saved);
      }
    }
  }

  #find(day: number, tenant: string, route: string, model: string): Sums {
    const book = this.#books.get(day) ?? new Map<string, Map<string, Map<string, Sums>>>();
    this.#books.set(day, book);
    const isKnown = book.has(tenant) || book.size < TENANTS_MAX || this.#hasBudget(tenant);
    const name = isKnown ? tenant : OTHER;
    const routes = book.get(name) ?? new Map<string, Map<string, Sums>>();
    book.set(name, routes);
    const models = routes.get(route) ?? new Map<string, Sums>();
    routes.set(route, models);
    const modelName = models.has(model) || models.size < MODELS_MAX ? model : OTHER;
    const sums = models.get(modelName) ?? { requests: 0, tokens: 0, pico: 0n, saved: 0n };
    models.set(modelName, sums);
    return sums;
  }
}

function listSums(book: Book): LedgerSums[] {
  const list: LedgerSums[] = [];
  for (const [tenant, routes] of book) {
    for (const [route, models] of routes) {
      for (const [model, { requests, tokens, pico, saved }] of models) {
        const sums = { requests, tokens, pico: pico.toString(), saved: saved.toString() };
        list.push({ tenant, route, model, ...sums });
      }
    }
  }
  return list;
}
