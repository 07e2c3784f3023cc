// Pools keep-alive connections to one upstream, with a queue of waiting requests.
import type { Engine, Swept } from "../engine/engine.ts";
import { type Acquirer, Reuse, type ReuseKind, kindOfCode } from "./acquire.ts";
import {
  type ConnectionOwner,
  prepareTransport,
  UpstreamConnection,
  type UpstreamTransport,
} from "./connection.ts";
import type {
  UpstreamAddress,
  UpstreamCounts,
  UpstreamPool,
  UpstreamPoolOptions,
} from "../contract/upstream.ts";
import { PollCheck } from "./poll-check.ts";

const ADDRESSES_MAX = 16;
const CONNECT_SHARE_MIN_MS = 1_000;

interface Attempt {
  addressIndex: number;
  triesLeft: number;
  deadlineMs: number;
  isTimedOut: boolean;
}

/** Creates a pool. Connections are opened on demand. Throws if the TLS material is invalid. */
export function createUpstreamPool(options: UpstreamPoolOptions): UpstreamPool {
  return new ConnectionPool(options);
}

/**
 * Requests use the most recently idle connection. Without one they wait in a FIFO, and a connection is opened for each,
 * up to `connectionsMax`. The first connection that becomes free serves the first waiting request that accepts it.
 *
 * ```text
 *   open  =  connecting  +  checking  +  idle  +  lent   <=  connectionsMax
 *   waiting  <=  connecting + checking + waitingMax
 *
 *   lent --release--> idle --acquire--> lent
 *                       \--Checked--> checking --polled, still open--> lent
 * ```
 *
 * An upstream may close a connection without announcing it. Its FIN has often arrived while the previous request is being
 * completed, so `Checked` requests wait until the socket has been polled once more; nginx checks connections likewise
 * before it keeps them.
 */
export class ConnectionPool implements UpstreamPool, ConnectionOwner, Swept {
  label = "";
  readonly #engine: Engine;
  readonly #connectionsMax: number;
  readonly #idleMax: number;
  readonly #idleTimeoutMs: number;
  readonly #waitingMax: number;
  readonly #waitTimeoutMs: number;
  readonly #connectTimeoutMs: number;
  readonly #requestsMax: number;
  readonly #headBytesMax: number;
  readonly #transport: UpstreamTransport;
  readonly #idle: UpstreamConnection[] = [];
  readonly #all: UpstreamConnection[] = [];
  readonly #attempts = new Map<UpstreamConnection, Attempt>();
  readonly #checking = new PollCheck((connection) => {
    this.#settleChecked(connection);
  });
  #waiting: Acquirer[] = [];
  #addresses: readonly UpstreamAddress[];
  /** The address of the last successful connection, which is tried first. */
  #preferred = 0;
  #closed = false;
  #onEmpty: (() => void)[] = [];

  constructor(options: UpstreamPoolOptions) {
    this.#engine = options.engine;
    this.#connectionsMax = Math.max(1, options.connectionsMax ?? 1_024);
    this.#idleMax = options.idleMax ?? 256;
    this.#idleTimeoutMs = options.idleTimeoutMs ?? 55_000;
    this.#waitingMax = options.waitingMax ?? 1_024;
    this.#waitTimeoutMs = options.waitTimeoutMs ?? 5_000;
    this.#connectTimeoutMs = options.connectTimeoutMs ?? 5_000;
    this.#requestsMax = options.requestsPerConnectionMax ?? 0;
    this.#headBytesMax = options.headBytesMax ?? 65_536;
    this.#addresses = options.addresses.slice(0, ADDRESSES_MAX);
    this.#transport = prepareTransport(options);
    this.#engine.add(this);
  }

  get counts(): UpstreamCounts {
    return {
      open: this.#all.length,
      connecting: this.#attempts.size,
      idle: this.#idle.length,
      waiting: this.#waiting.length,
    };
  }

  setAddresses(addresses: readonly UpstreamAddress[]): void {
    this.#addresses = addresses.slice(0, ADDRESSES_MAX);
    this.#preferred = 0;
    for (const connection of this.#all) connection.checkAddress(this.#addresses);
    for (const connection of this.#idle.splice(0)) {
      if (connection.isOutdated) connection.destroy();
      else this.#idle.push(connection);
    }
  }

  /**
   * Returns an idle connection or null. After null the acquirer is called back exactly once, possibly before this
   * returns, unless it cancels.
   */
  acquire(acquirer: Acquirer, reuse: ReuseKind = Reuse.Any): UpstreamConnection | null {
    acquirer.reuse = reuse;
    // Retries after a lost idle connection use a new one: the other idle ones are most likely lost as well.
    if (reuse === Reuse.Never) this.closeIdle();
    const connection = this.#takeIdle();
    if (connection === null) {
      this.#wait(acquirer);
      return null;
    }
    // A sweep since the release implies that the socket has been polled since then.
    if (reuse === Reuse.Checked && connection.sinceMs === this.#engine.coarseNowMs) {
      acquirer.waitingSinceMs = this.#engine.now();
      this.#waiting.push(acquirer);
      this.#checking.add(connection);
      return null;
    }
    connection.requests++;
    return connection;
  }

  /** Stops waiting. */
  cancel(acquirer: Acquirer): void {
    if (acquirer.waitingSinceMs === 0) return;
    acquirer.waitingSinceMs = 0;
    const index = this.#waiting.indexOf(acquirer);
    if (index !== -1) this.#waiting.splice(index, 1);
  }

  /** Returns a connection after a complete response. The next waiting request that accepts it receives it. */
  release(connection: UpstreamConnection): void {
    connection.user = null;
    if (
      this.#closed ||
      connection.dead ||
      (connection.isOutdated && connection.requests > 0) ||
      (this.#requestsMax !== 0 && connection.requests >= this.#requestsMax)
    ) {
      connection.destroy();
      return;
    }
    if (this.#waiting.length > 0) this.#offer(connection, false);
    else this.#keepIdle(connection);
  }

  onConnected(connection: UpstreamConnection): void {
    const attempt = this.#attempts.get(connection);
    this.#attempts.delete(connection);
    if (attempt !== undefined) this.#preferred = attempt.addressIndex;
    this.release(connection);
  }

  onConnectFailed(connection: UpstreamConnection, code: string, _message: string): void {
    const attempt = this.#attempts.get(connection);
    this.#attempts.delete(connection);
    this.#remove(connection);
    if (attempt === undefined || this.#closed) {
      this.#settleEmpty();
      return;
    }
    attempt.triesLeft--;
    if (
      attempt.triesLeft > 0 &&
      this.#engine.now() < attempt.deadlineMs &&
      this.#waiting.length > 0
    ) {
      attempt.addressIndex = (attempt.addressIndex + 1) % this.#addresses.length;
      this.#open(attempt);
      return;
    }
    const waiter = this.#shiftWaiting();
    waiter?.onAcquireFailed(attempt.isTimedOut ? "connect-timeout" : kindOfCode(code), code);
  }

  onLost(connection: UpstreamConnection): void {
    const index = this.#idle.indexOf(connection);
    if (index !== -1) this.#idle.splice(index, 1);
    this.#remove(connection);
    this.#openForWaiting();
    this.#settleEmpty();
  }

  sweep(nowMs: number): void {
    const expired = nowMs - this.#idleTimeoutMs;
    let count = 0;
    while (count < this.#idle.length && this.#idle[count]!.sinceMs <= expired) count++;
    for (const connection of this.#idle.splice(0, count)) connection.destroy();
    for (const [connection, attempt] of this.#attempts) {
      if (nowMs < connection.sinceMs) continue;
      attempt.isTimedOut = true;
      connection.destroy();
    }
    // For the first requests in the queue connections are being opened, with their own deadlines.
    let index = this.#attempts.size + this.#checking.count;
    while (index < this.#waiting.length) {
      const waiter = this.#waiting[index]!;
      if (nowMs - waiter.waitingSinceMs < this.#waitTimeoutMs) {
        index++;
        continue;
      }
      this.#waiting.splice(index, 1);
      waiter.waitingSinceMs = 0;
      waiter.onAcquireFailed("queue-timeout", "");
    }
  }

  closeIdle(): void {
    for (const connection of this.#idle.splice(0)) connection.destroy();
  }

  async drain(deadlineMs: number): Promise<void> {
    this.#closed = true;
    this.#failWaiting();
    this.closeIdle();
    if (this.#all.length > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(() => {
          this.close();
        }, deadlineMs);
        this.#onEmpty.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    this.#engine.remove(this);
  }

  close(): void {
    this.#closed = true;
    this.#failWaiting();
    for (const connection of this.#all.slice()) connection.destroy();
    this.#engine.remove(this);
  }

  #takeIdle(): UpstreamConnection | null {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined) return null;
      if (!connection.dead) return connection;
      connection.destroy();
    }
  }

  #wait(acquirer: Acquirer): void {
    if (this.#closed) {
      acquirer.onAcquireFailed("pool-closed", "");
      return;
    }
    if (this.#addresses.length === 0) {
      acquirer.onAcquireFailed("connect-failed", "ENOTFOUND");
      return;
    }
    const coming = this.#attempts.size + this.#checking.count;
    const canOpen = this.#all.length < this.#connectionsMax && coming <= this.#waiting.length;
    if (!canOpen && this.#waiting.length - coming >= this.#waitingMax) {
      acquirer.onAcquireFailed("queue-full", "");
      return;
    }
    acquirer.waitingSinceMs = this.#engine.now();
    this.#waiting.push(acquirer);
    if (canOpen) this.#openFor();
  }

  /** Opens a connection if more requests wait than connections are being opened. */
  #openForWaiting(): void {
    if (this.#waiting.length <= this.#attempts.size + this.#checking.count) return;
    if (this.#all.length < this.#connectionsMax) this.#openFor();
  }

  #openFor(): void {
    if (this.#closed || this.#addresses.length === 0) return;
    this.#open({
      addressIndex: this.#preferred % this.#addresses.length,
      triesLeft: this.#addresses.length,
      deadlineMs: this.#engine.now() + this.#connectTimeoutMs,
      isTimedOut: false,
    });
  }

  #open(attempt: Attempt): void {
    const nowMs = this.#engine.now();
    const address = this.#addresses[attempt.addressIndex % this.#addresses.length]!;
    const connection = new UpstreamConnection(
      this.#engine,
      this,
      address,
      this.#transport,
      this.#headBytesMax,
    );
    // An address that drops packets must not use up the time of the next ones.
    const shareMs = (attempt.deadlineMs - nowMs) / attempt.triesLeft;
    connection.sinceMs = Math.min(
      attempt.deadlineMs,
      nowMs + Math.max(CONNECT_SHARE_MIN_MS, shareMs),
    );
    attempt.isTimedOut = false;
    connection.slot = this.#all.length;
    this.#all.push(connection);
    this.#attempts.set(connection, attempt);
    if (connection.stream !== null) connection.reportStream();
  }

  /** Assigns a free connection to the first waiting request that accepts it; otherwise it becomes idle or is closed. */
  #offer(connection: UpstreamConnection, isChecked: boolean): void {
    const isFresh = connection.requests === 0 && !connection.wasIdle;
    let index = 0;
    const { length } = this.#waiting;
    if (!isFresh) while (index < length && this.#waiting[index]!.reuse === Reuse.Never) index++;
    if (index < length) {
      const acquirer = this.#waiting[index]!;
      if (!isFresh && !isChecked && acquirer.reuse === Reuse.Checked) {
        this.#checking.add(connection);
        return;
      }
      this.#waiting.splice(index, 1);
      acquirer.waitingSinceMs = 0;
      connection.requests++;
      acquirer.onAcquired(connection);
      return;
    }
    const isRoomNeeded =
      this.#all.length >= this.#connectionsMax &&
      length > this.#attempts.size + this.#checking.count;
    if (!isRoomNeeded) {
      this.#keepIdle(connection);
      return;
    }
    connection.destroy();
    this.#remove(connection);
    this.#openForWaiting();
  }

  #keepIdle(connection: UpstreamConnection): void {
    if (this.#idle.length >= this.#idleMax) {
      connection.destroy();
      return;
    }
    connection.wasIdle = true;
    connection.sinceMs = this.#engine.coarseNowMs;
    this.#idle.push(connection);
  }

  #settleChecked(connection: UpstreamConnection): void {
    if (connection.dead || connection.isOutdated || this.#closed) {
      connection.destroy();
      this.#openForWaiting();
    } else if (this.#waiting.length > 0) this.#offer(connection, true);
    else this.#keepIdle(connection);
  }

  #shiftWaiting(): Acquirer | undefined {
    const acquirer = this.#waiting.shift();
    if (acquirer !== undefined) acquirer.waitingSinceMs = 0;
    return acquirer;
  }

  #failWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const acquirer of waiting) {
      acquirer.waitingSinceMs = 0;
      acquirer.onAcquireFailed("pool-closed", "");
    }
  }

  #remove(connection: UpstreamConnection): void {
    const { slot } = connection;
    if (slot === -1) return;
    connection.slot = -1;
    const last = this.#all.pop()!;
    if (last !== connection) {
      this.#all[slot] = last;
      last.slot = slot;
    }
  }

  #settleEmpty(): void {
    if (!this.#closed || this.#all.length > 0) return;
    for (const resolve of this.#onEmpty.splice(0)) resolve();
  }
}
