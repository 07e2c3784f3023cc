// The instances of one guest in one thread, and the memory that all guests of the thread share.
import { GuestError } from "../errors.ts";
import type { GuestEnvironment } from "./guest-messages.ts";
import { HttpGuest } from "./http-guest.ts";
import type { HttpModule } from "./http-module.ts";

const INSTANCES_MAX = 32;
const WAITING_MAX = 256;
const WAIT_MS = 1_000;

/** The pools of one module, which differ in their environment: they share its maximum number of instances. */
export class ModulePools {
  readonly instancesMax: number;
  readonly #pools = new Set<GuestInstances>();

  constructor(instancesMax: number = INSTANCES_MAX) {
    this.instancesMax = instancesMax;
  }

  /** True if there may be another instance, after an idle one of another pool has been dropped. */
  makeRoom(): boolean {
    let count = 0;
    for (const { size } of this.#pools) count += size;
    if (count < this.instancesMax) return true;
    for (const pool of this.#pools) if (pool.dropOneIdle()) return true;
    return false;
  }

  open(pool: GuestInstances): void {
    this.#pools.add(pool);
  }

  close(pool: GuestInstances): void {
    this.#pools.delete(pool);
  }
}

/** Linear memory of all instances of a thread. */
export class GuestMemoryBudget {
  readonly bytesMax: number;
  readonly #pools = new Set<GuestInstances>();
  #bytes = 0;
  #isServing = false;
  /** Requests that wait in all pools. */
  waiting = 0;

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

  /** An instance has become idle, or was dropped: a request that waits in another pool may get a new one instead. */
  serveWaiting(): void {
    if (this.waiting === 0 || this.#isServing) return;
    this.#isServing = true;
    for (const pool of this.#pools) pool.serveWaiting();
    this.#isServing = false;
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
  /** Pools of the same module. Default: this one alone, with 32 instances. */
  readonly pools?: ModulePools;
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
 *   acquire --> idle instance | new instance (≤ 32 of the module, memory left) | queue (≤ 256, ≤ 1 s) --> release
 * ```
 */
export class GuestInstances {
  readonly #options: GuestInstancesOptions;
  readonly #idle: HttpGuest[] = [];
  readonly #waiting = new Set<Waiter>();
  readonly #pools: ModulePools;
  #size = 0;
  #isClosed = false;

  constructor(options: GuestInstancesOptions) {
    this.#options = options;
    this.#pools = options.pools ?? new ModulePools();
    this.#pools.open(this);
    options.budget.open(this);
  }

  /** Number of instances. */
  get size(): number {
    return this.#size;
  }

  /** Creates the first instance, so that the first request does not wait for it. Throws a GuestError. */
  warm(): void {
    if (this.size === 0 && this.#makeRoom()) this.#idle.push(this.#create());
  }

  /**
   * Returns an instance for one request, which must be released; a promise if the request has to wait. Throws, or rejects
   * with, a GuestError: `overloaded` if there is none in time.
   */
  acquire(): HttpGuest | Promise<HttpGuest> {
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    const { waitingMax = WAITING_MAX } = this.#options;
    if (this.#isClosed) throw new GuestError("closed", "The guest was removed.");
    if (this.#makeRoom()) return this.#create();
    if (this.#waiting.size >= waitingMax)
      throw new GuestError("overloaded", "Too many requests wait for the guest.");
    return this.#wait();
  }

  /** An instance that serves no request, which must be released; undefined if there is none now. */
  takeIdle(): HttpGuest | undefined {
    return this.#idle.pop();
  }

  /** Takes an instance back, or drops it if it cannot serve another request. */
  release(guest: HttpGuest): void {
    guest.endRequest();
    if (!guest.isReusable || this.#isClosed) {
      this.#drop(guest);
      this.serveWaiting();
    } else {
      this.#account(guest);
      if (this.#waiting.size > 0) {
        const [waiter] = this.#waiting;
        this.#serve(waiter!, guest);
        return;
      }
      this.#idle.push(guest);
    }
    this.#options.budget.serveWaiting();
  }

  /** Creates instances for requests that wait, as far as there is room. */
  serveWaiting(): void {
    while (this.#waiting.size > 0 && this.#makeRoom()) this.#replace();
  }

  /** Drops instances that serve no request. */
  dropIdle(): void {
    for (const guest of this.#idle.splice(0)) this.#drop(guest);
  }

  /** Drops an instance that serves no request; false if there is none. */
  dropOneIdle(): boolean {
    const guest = this.#idle.shift();
    if (guest === undefined) return false;
    this.#drop(guest);
    return true;
  }

  /** Drops idle instances now, the others when they are released. Requests that wait fail. */
  close(): void {
    this.#isClosed = true;
    this.dropIdle();
    this.#closeIfEmpty();
    this.#options.budget.close(this);
    for (const waiter of this.#waiting) this.#refuse(waiter, "closed", "The guest was removed.");
  }

  #makeRoom(): boolean {
    return this.#pools.makeRoom() && this.#options.budget.makeRoom();
  }

  // Until then its instances count.
  #closeIfEmpty(): void {
    if (this.#isClosed && this.size === 0) this.#pools.close(this);
  }

  #create(): HttpGuest {
    const guest = new HttpGuest(this.#options.module, this.#options.environment);
    this.#size++;
    this.#account(guest);
    return guest;
  }

  #account(guest: HttpGuest): void {
    const { memoryBytes } = guest;
    if (memoryBytes === guest.accountedBytes) return;
    this.#options.budget.add(memoryBytes - guest.accountedBytes);
    guest.accountedBytes = memoryBytes;
  }

  #drop(guest: HttpGuest): void {
    this.#options.budget.add(-guest.accountedBytes);
    this.#size--;
    this.#closeIfEmpty();
  }

  #wait(): Promise<HttpGuest> {
    const { promise, resolve, reject } = Promise.withResolvers<HttpGuest>();
    const timer = setTimeout(() => {
      this.#refuse(waiter, "overloaded", "No instance of the guest became free in time.");
    }, this.#options.waitMs ?? WAIT_MS);
    const waiter: Waiter = { resolve, reject, timer };
    this.#waiting.add(waiter);
    this.#options.budget.waiting++;
    return promise;
  }

  // A new instance for the first request that waits. If there can be none, the others need not wait for theirs.
  #replace(): void {
    const [waiter] = this.#waiting;
    if (waiter === undefined) return;
    try {
      this.#serve(waiter, this.#create());
    } catch (error) {
      for (const other of this.#waiting) {
        this.#leave(other);
        clearTimeout(other.timer);
        other.reject(error as GuestError);
      }
    }
  }

  #leave(waiter: Waiter): void {
    if (this.#waiting.delete(waiter)) this.#options.budget.waiting--;
  }

  #serve(waiter: Waiter, guest: HttpGuest): void {
    this.#leave(waiter);
    clearTimeout(waiter.timer);
    waiter.resolve(guest);
  }

  #refuse(waiter: Waiter, code: "overloaded" | "closed", message: string): void {
    this.#leave(waiter);
    clearTimeout(waiter.timer);
    waiter.reject(new GuestError(code, message));
  }
}
