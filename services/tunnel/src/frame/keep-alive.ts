// Keep-alive of a session: pings, round trips, silent peers.

/** A ping is sent after this time without bytes from the peer. */
const PING_AFTER_MS = 15_000;
/** The same while streams are open, to notice a stopped peer soon. */
const PING_BUSY_AFTER_MS = 2_000;
/** A peer that has not answered a ping for this long is unresponsive, until it sends something. */
const UNRESPONSIVE_MS = 3_000;
/** A peer that has sent nothing for this long is given up. */
const SILENT_MS = 30_000;
/** Busy sessions measure the round trip this often: windows depend on it. */
const SAMPLE_AFTER_MS = 900;
/** Most growth of the round trip between two samples. */
const ROUND_TRIP_RISE = 1.02;
const NUMBERS = 0xffff_ffff;

/** Times of one session; all are monotonic milliseconds. */
export class KeepAlive {
  /** Shortest recent round trip. */
  roundTripMs = 1;
  /** Time of the last received bytes. */
  heardMs: number;
  readonly #now: () => number;
  /** Time of the unanswered ping; 0 without one. */
  #sentMs = 0;
  #lastMs = 0;
  #number = 0;

  constructor(now: () => number) {
    this.#now = now;
    this.heardMs = now();
  }

  /** Time since the last received bytes. */
  get silentMs(): number {
    return this.#now() - this.heardMs;
  }

  /** False while a ping has been unanswered for too long: the peer is stopped, or the line is cut. */
  get isResponsive(): boolean {
    if (this.#sentMs === 0) return true;
    return this.#now() - Math.max(this.#sentMs, this.heardMs) < UNRESPONSIVE_MS;
  }

  /** True if the peer is given up. */
  get isLost(): boolean {
    return this.silentMs > SILENT_MS;
  }

  /** True if nothing has been received for some seconds. */
  get isQuiet(): boolean {
    return this.silentMs > PING_BUSY_AFTER_MS;
  }

  /** True if a ping is due; `isBusy` while streams are open. */
  isDue(isBusy: boolean): boolean {
    if (!isBusy) return this.silentMs > PING_AFTER_MS;
    return this.isQuiet || this.#now() - this.#lastMs > SAMPLE_AFTER_MS;
  }

  /** Payload of the next ping; undefined while one is unanswered. */
  begin(): Buffer | undefined {
    if (this.#sentMs !== 0) return undefined;
    this.#sentMs = this.#now();
    this.#lastMs = this.#sentMs;
    const payload = Buffer.alloc(8);
    payload.writeUInt32BE(++this.#number % NUMBERS, 4);
    return payload;
  }

  /** Measures the round trip of an answered ping. */
  onPong(payload: Buffer): void {
    if (this.#sentMs === 0 || payload.readUInt32BE(4) !== this.#number % NUMBERS) return;
    const roundTripMs = this.#now() - this.#sentMs;
    this.#sentMs = 0;
    // Rises slowly, so that a queue on the way does not count as distance.
    const bound = this.#number === 1 ? Infinity : this.roundTripMs * ROUND_TRIP_RISE;
    this.roundTripMs = Math.min(roundTripMs, bound);
  }
}
