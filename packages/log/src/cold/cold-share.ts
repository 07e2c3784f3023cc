// The share of cold reads: what others wait for decides how fast history is read.

const WINDOW_MS = 100;
/** Rate at which history is read however busy the rest is. */
const RATE_MIN = 4 * 1024 * 1024;
/** Growth per window: others notice each step before the next ones. */
const RATE_STEP = 1024 * 1024;
const RATE_MAX = 2 * 1024 * 1024 * 1024;
/** Highest rate at which readers of history begin: what others bear may have changed since the last ones. */
const RATE_START_MAX = 32 * 1024 * 1024;
/** Below it nobody reads history. */
const RATE_IDLE = 256 * 1024;
/** Weight of a window in the rate of cold reads, which come in chunks. */
const RATE_WEIGHT = 0.2;
const DECREASE = 0.5;
/** Others may wait this much longer than without cold reads. */
const SLOWDOWN = 1.25;
/** Durations are measured in whole milliseconds, so that smaller differences are noise. */
const NOISE_MS = 0.5;
/** Fewer uses by others in this time do not count: the log commits now and then by itself. */
const USES_MIN = 4;
const CALM_MS = 1_000;
/** Weight of a window in what is usual. */
const USUAL_WEIGHT = 0.1;
/** Weight of a window in the longest delays of late: single ones happen without cold reads as well. */
const LONGEST_WEIGHT = 0.3;
/** A user waits for the loop and for a commit, so that their longest delays add up. */
const LONGEST_SLOWDOWN = 1.1;
const LONGEST_NOISE_MS = 0.75;

/**
 * Bounds the bytes that cold reads deliver, and those that come from the store, while others use the log. Cold readers take
 * the same processors, event loop and disk: if commits take longer than they do without cold reads, on average or the longest
 * of a window, or the event loop is later, the rate is halved, and it grows again in small steps while they do not. As soon as
 * others use the log, it begins low. Nothing is bounded while only history is read.
 */
export class ColdShare {
  readonly #commits = new Delay();
  readonly #loop = new Delay();
  /** Bytes per second. */
  #rate = Number.POSITIVE_INFINITY;
  /** The rate once others use the log. */
  #startRate = RATE_MIN;
  readonly #delivered = new Lane();
  readonly #received = new Lane();
  #windowStartMs = 0;
  /** Bytes per second of the last windows. */
  #coldRate = 0;
  /** The last uses by others, the oldest first. */
  readonly #usesMs: number[] = [];

  /** Bytes per second that are delivered at most; infinite while nothing is bounded. */
  get rate(): number {
    return this.#rate;
  }

  /** Notes a commit of records that has taken `durationMs`. */
  noteCommit(durationMs: number, nowMs: number): void {
    this.#turn(nowMs);
    this.#commits.note(durationMs);
    this.#noteUse(nowMs);
  }

  /** Notes a read of local records. */
  noteLocalRead(nowMs: number): void {
    this.#noteUse(nowMs);
  }

  /** Notes how late the event loop has run a timer. */
  noteLateness(ms: number, nowMs: number): void {
    this.#turn(nowMs);
    this.#loop.note(ms);
  }

  /** Milliseconds for which a read of `bytes` has to wait. */
  take(bytes: number, nowMs: number): number {
    this.#turn(nowMs);
    return this.#delivered.pass(bytes, this.#rate, nowMs).beforeMs;
  }

  /** Bytes of `take` are not read: the next ones need not wait for them. */
  giveBack(bytes: number): void {
    this.#delivered.giveBack(bytes, this.#rate);
  }

  /** Milliseconds for which the next bytes of the store have to wait, after `bytes` of it. */
  receive(bytes: number, nowMs: number): number {
    this.#turn(nowMs);
    return this.#received.pass(bytes, this.#rate, nowMs).afterMs;
  }

  #noteUse(nowMs: number): void {
    this.#usesMs.push(nowMs);
    if (this.#usesMs.length > USES_MIN) this.#usesMs.shift();
    // The first ones would wait for all that is on its way already.
    if (this.#rate === Number.POSITIVE_INFINITY && this.#isUsed(nowMs))
      this.#rate = this.#startRate;
  }

  #isUsed(nowMs: number): boolean {
    const [first] = this.#usesMs;
    // All at one moment are one use.
    const isRepeated = this.#usesMs.length === USES_MIN && this.#usesMs.at(-1)! > first!;
    return isRepeated && nowMs - first! <= CALM_MS;
  }

  #turn(nowMs: number): void {
    const elapsedMs = nowMs - this.#windowStartMs;
    // A clock that was set back begins a new window.
    if (elapsedMs >= 0 && elapsedMs < WINDOW_MS) return;
    const bytes = Math.max(this.#delivered.end(), this.#received.end());
    if (elapsedMs > 0) this.#adjust(nowMs, (bytes * 1_000) / elapsedMs);
    this.#windowStartMs = nowMs;
  }

  #adjust(nowMs: number, windowRate: number): void {
    this.#coldRate += (windowRate - this.#coldRate) * RATE_WEIGHT;
    const coldRate = this.#coldRate;
    const isFew = coldRate <= RATE_MIN * 2;
    const isSlow = [this.#commits.judge(isFew), this.#loop.judge(isFew)];
    if (!this.#isUsed(nowMs)) {
      if (this.#rate !== Number.POSITIVE_INFINITY) this.#keepStart();
      this.#rate = Number.POSITIVE_INFINITY;
    } else if (coldRate < RATE_IDLE) {
      this.#keepStart();
      this.#rate = this.#startRate;
    } else if (isSlow.includes("unknown")) {
      // The usual delay is measured in the next windows.
      this.#rate = RATE_MIN;
    } else if (isSlow.includes("slow")) {
      this.#rate = Math.max(RATE_MIN, Math.min(this.#rate, coldRate) * DECREASE);
    } else if (coldRate > this.#rate / 2) {
      // More than is read has not been tried.
      this.#rate = Math.min(RATE_MAX, this.#rate + RATE_STEP);
    }
  }

  #keepStart(): void {
    this.#startRate = Math.min(this.#rate, RATE_START_MAX);
  }
}

/** Bytes that pass one after another at a rate. */
class Lane {
  /** When those so far have passed. */
  #paidUntilMs = 0;
  #bytes = 0;

  /** Milliseconds until these bytes may pass, and until the next ones may. */
  pass(bytes: number, rate: number, nowMs: number): { beforeMs: number; afterMs: number } {
    this.#bytes += bytes;
    if (rate === Number.POSITIVE_INFINITY) return { beforeMs: 0, afterMs: 0 };
    const startMs = Math.max(nowMs, this.#paidUntilMs);
    this.#paidUntilMs = startMs + (bytes / rate) * 1_000;
    return { beforeMs: startMs - nowMs, afterMs: this.#paidUntilMs - nowMs };
  }

  giveBack(bytes: number, rate: number): void {
    this.#paidUntilMs -= (bytes / rate) * 1_000;
  }

  /** Ends the window and returns its bytes. */
  end(): number {
    const bytes = this.#bytes;
    this.#bytes = 0;
    return bytes;
  }
}

/** The mean and the longest of what has been noted in a window, and what they are while cold reads are few. */
class Delay {
  #count = 0;
  #sumMs = 0;
  #longestMs = 0;
  #usual: { meanMs: number; longestMs: number } | undefined;
  /** The longest of the last windows, on average. */
  #lastLongestMs = 0;

  note(ms: number): void {
    this.#count++;
    this.#sumMs += ms;
    this.#longestMs = Math.max(this.#longestMs, ms);
  }

  /** Ends the window; `isUsual` if it tells what is usual. */
  judge(isUsual: boolean): "usual" | "slow" | "unknown" {
    if (this.#count === 0) return "usual";
    const meanMs = this.#sumMs / this.#count;
    const longestMs = this.#longestMs;
    this.#count = 0;
    this.#sumMs = 0;
    this.#longestMs = 0;
    this.#lastLongestMs += (longestMs - this.#lastLongestMs) * LONGEST_WEIGHT;
    if (isUsual) {
      const usual = (this.#usual ??= { meanMs, longestMs });
      usual.meanMs += (meanMs - usual.meanMs) * USUAL_WEIGHT;
      usual.longestMs += (longestMs - usual.longestMs) * USUAL_WEIGHT;
      return "usual";
    }
    if (this.#usual === undefined) return "unknown";
    const isSlow =
      meanMs > this.#usual.meanMs * SLOWDOWN + NOISE_MS ||
      this.#lastLongestMs > this.#usual.longestMs * LONGEST_SLOWDOWN + LONGEST_NOISE_MS;
    return isSlow ? "slow" : "usual";
  }
}
