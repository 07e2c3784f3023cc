// The instances of one guest in one thread, and the memory that all guests of the thread share.
import { GuestError } from "../errors.ts";
import type { GuestEnvironment } from "./guest-messages.ts";
import { HttpGuest } from "./http-guest.ts";
import type { HttpModule } from "./http-module.ts";

const INSTANCES_MAX = 32;
const WAITING_MAX = 256;
const WAIT_MS = 1_000;

/** Linear memory of all instances of a thread. */
export class GuestMemoryBudget {
  readonly bytesMax: number;
  readonly #pools = new Set<GuestInstances>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Bytes of the instances that exist. */
  get bytes(): number {
    return this.#bytes;
  }

  /** True if there is room for another instance, after idle ones of other guests have been dropped. */
  makeRoom(): boolean {
    for (const pool of this.#pools) {
      if (this.#bytes < this.bytesMax) break;
      pool.dropIdle();
    }
    return this.#bytes < this.bytesMax;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
  }

  open(pool: GuestInstances): void {
    this.#pools.add(pool);
  }

  close(pool: GuestInstances): void {
    this.#pools.delete(pool);
  }
}

/** Options of {@link GuestInstances}. */
export interface GuestInstancesOptions {
  readonly module: HttpModule;
  readonly environment: GuestEnvironment;
  readonly budget: GuestMemoryBudget;
  /** Maximum number of instances, default 32. */
  readonly instancesMax?: number;
  /** Maximum number of requests that wait for an instance, default 256. */
  readonly waitingMax?: number;
  /** Maximum time that they wait in milliseconds, default 1 000. */
  readonly waitMs?: number;
}

interface Waiter {
  readonly resolve: (guest: HttpGuest) => void;
  readonly reject: (error: GuestError) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * A pool of instances, each of which serves one request at a time:
 *
 * ```text
 *   acquire --> idle instance | new instance (≤ 32, memory left) | queue (≤ 256, ≤ 1 s) --> release
 * ```
 */
export class GuestInstances {
  readonly #options: GuestInstancesOptions;
  readonly #idle: HttpGuest[] = [];
  /** Accounted memory of each instance that exists. */
  readonly #bytes = new Map<HttpGuest, number>();
  readonly #waiting = new Set<Waiter>();
  #isClosed = false;

  constructor(options: GuestInstancesOptions) {
    this.#options = options;
    options.budget.open(this);
  }

  /** Number of instances. */
  get size(): number {
    return this.#bytes.size;
  }

  /** Creates the first instance, so that the first request does not wait for it. Throws a GuestError. */
  warm(): void {
    if (this.size === 0 && this.#options.budget.makeRoom()) this.#idle.push(this.#create());
  }

  /**
   * Returns an instance for one request, which must be released; a promise if the request has to wait. Throws, or rejects
   * with, a GuestError: `overloaded` if there is none in time.
   */
  acquire(): HttpGuest | Promise<HttpGuest> {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    const { instancesMax = INSTANCES_MAX, waitingMax = WAITING_MAX, budget } = this.#options;
    if (this.#isClosed) throw new GuestError("closed", "The guest was removed.");
    if (this.size < instancesMax && budget.makeRoom()) return this.#create();
    if (this.#waiting.size >= waitingMax)
      throw new GuestError("overloaded", "Too many requests wait for the guest.");
    return this.#wait();
  }

  /** Takes an instance back, or drops it if it cannot serve another request. */
  release(guest: HttpGuest): void {
    guest.endRequest();
    if (!guest.isReusable || this.#isClosed) {
      this.#drop(guest);
      this.#replace();
      return;
    }
    this.#account(guest);
    const [waiter] = this.#waiting;
    if (waiter === undefined) this.#idle.push(guest);
    else this.#serve(waiter, guest);
  }

  /** Drops instances that serve no request. */
  dropIdle(): void {
    for (const guest of this.#idle.splice(0)) this.#drop(guest);
  }

  /** Drops idle instances now, the others when they are released. Requests that wait fail. */
  close(): void {
    this.#isClosed = true;
    this.dropIdle();
    this.#options.budget.close(this);
    for (const waiter of this.#waiting) this.#refuse(waiter, "closed", "The guest was removed.");
  }

  #create(): HttpGuest {
    const guest = new HttpGuest(this.#options.module, this.#options.environment);
    this.#bytes.set(guest, 0);
    this.#account(guest);
    return guest;
  }

  #account(guest: HttpGuest): void {
    const { memoryBytes } = guest;
    this.#options.budget.add(memoryBytes - this.#bytes.get(guest)!);
    this.#bytes.set(guest, memoryBytes);
  }

  #drop(guest: HttpGuest): void {
    this.#options.budget.add(-this.#bytes.get(guest)!);
    this.#bytes.delete(guest);
  }

  #wait(): Promise<HttpGuest> {
    const { promise, resolve, reject } = Promise.withResolvers<HttpGuest>();
    const timer = setTimeout(() => {
      this.#refuse(waiter, "overloaded", "No instance of the guest became free in time.");
    }, this.#options.waitMs ?? WAIT_MS);
    const waiter: Waiter = { resolve, reject, timer };
    this.#waiting.add(waiter);
    return promise;
  }

  // The place of a dropped instance goes to the first request that waits.
  #replace(): void {
    const [waiter] = this.#waiting;
    if (waiter === undefined) return;
    try {
      this.#serve(waiter, this.#create());
    } catch (error) {
      this.#waiting.delete(waiter);
      clearTimeout(waiter.timer);
      waiter.reject(error as GuestError);
    }
  }

  #serve(waiter: Waiter, guest: HttpGuest): void {
    this.#waiting.delete(waiter);
    clearTimeout(waiter.timer);
    waiter.resolve(guest);
  }

  #refuse(waiter: Waiter, code: "overloaded" | "closed", message: string): void {
    this.#waiting.delete(waiter);
    clearTimeout(waiter.timer);
    waiter.reject(new GuestError(code, message));
  }
}
