// The share of cold reads: what others wait for decides how fast history is read.

const WINDOW_MS = 100;
/** Rate at which history is read however busy the rest is. */
const RATE_MIN = 4 * 1024 * 1024;
/** Growth per window: others notice each step before the next ones. */
const RATE_STEP = 1024 * 1024;
/** From here on the rate is not bounded at all. */
const RATE_MAX = 2 * 1024 * 1024 * 1024;
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

/**
 * Bounds the bytes that cold reads deliver while others use the log. Cold readers take the same processors, event loop and
 * disk: if commits take longer than they do without cold reads, or the event loop is later, the rate is halved, and it
 * grows again in small steps while they do not. Nothing is bounded while only history is read.
 */
export class ColdShare {
  readonly #commits = new Delay();
  readonly #loop = new Delay();
  /** Bytes per second. */
  #rate = Number.POSITIVE_INFINITY;
  /** When the bytes that were granted so far have passed. */
  #paidUntilMs = 0;
  #windowStartMs = 0;
  #coldBytes = 0;
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
    this.#coldBytes += bytes;
    if (this.#rate === Number.POSITIVE_INFINITY) return 0;
    const startMs = Math.max(nowMs, this.#paidUntilMs);
    this.#paidUntilMs = startMs + (bytes / this.#rate) * 1_000;
    return startMs - nowMs;
  }

  #noteUse(nowMs: number): void {
    this.#usesMs.push(nowMs);
    if (this.#usesMs.length > USES_MIN) this.#usesMs.shift();
  }

  #isUsed(nowMs: number): boolean {
    return this.#usesMs.length === USES_MIN && nowMs - this.#usesMs[0]! <= CALM_MS;
  }

  #turn(nowMs: number): void {
    const elapsedMs = nowMs - this.#windowStartMs;
    // A clock that was set back begins a new window.
    if (elapsedMs >= 0 && elapsedMs < WINDOW_MS) return;
    if (elapsedMs > 0) this.#adjust(nowMs, (this.#coldBytes * 1_000) / elapsedMs);
    this.#windowStartMs = nowMs;
    this.#coldBytes = 0;
  }

  #adjust(nowMs: number, coldRate: number): void {
    const isFew = coldRate <= RATE_MIN * 2;
    const isSlow = [this.#commits.judge(isFew), this.#loop.judge(isFew)];
    if (!this.#isUsed(nowMs)) {
      this.#rate = Number.POSITIVE_INFINITY;
    } else if (isSlow.includes("unknown")) {
      // The usual delay is measured in the next windows.
      this.#rate = RATE_MIN;
    } else if (isSlow.includes("slow")) {
      this.#rate = Math.max(RATE_MIN, Math.min(this.#rate, coldRate) * DECREASE);
    } else if (this.#rate !== Number.POSITIVE_INFINITY) {
      this.#rate += RATE_STEP;
      if (this.#rate >= RATE_MAX) this.#rate = Number.POSITIVE_INFINITY;
    }
  }
}

/** The mean of what has been noted in a window, and what it is while cold reads are few. */
class Delay {
  #count = 0;
  #sumMs = 0;
  #usualMs: number | undefined;

  note(ms: number): void {
    this.#count++;
    this.#sumMs += ms;
  }

  /** Ends the window; `isUsual` if it tells what is usual. */
  judge(isUsual: boolean): "usual" | "slow" | "unknown" {
    if (this.#count === 0) return "usual";
    const meanMs = this.#sumMs / this.#count;
    this.#count = 0;
    this.#sumMs = 0;
    if (isUsual) {
      const before = this.#usualMs ?? meanMs;
      this.#usualMs = before + (meanMs - before) * USUAL_WEIGHT;
      return "usual";
    }
    if (this.#usualMs === undefined) return "unknown";
    return meanMs > this.#usualMs * SLOWDOWN + NOISE_MS ? "slow" : "usual";
  }
}
