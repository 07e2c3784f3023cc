// Slows down guessing of tokens and passwords: failed attempts per address and minute.
import { isIPv6 } from "node:net";
import type { Clock } from "@platform/kernel/time";

const WINDOW_MS = 60_000;
const FAILURES_MAX = 20;
const ADDRESSES_MAX = 10_000;

interface Failures {
  count: number;
  sinceMs: number;
}

/**
 * Failed attempts with secrets of one kind. `guesses` are passwords and short tokens: an address with too many is refused
 * with the right one, too, because otherwise the refusal would reveal it. `tokens` cannot be guessed: they are verified
 * first, and only those that are invalid are refused, so that a client with an old token does not lock out its network.
 */
export interface Throttles {
  readonly guesses: Throttle;
  readonly tokens: Throttle;
}

/** Creates counters without failures. */
export function createThrottles(clock: Clock): Throttles {
  return { guesses: new Throttle(clock), tokens: new Throttle(clock) };
}

/**
 * Counts failed attempts per IPv4 address or IPv6 /64 network; an address with too many waits until its minute is over.
 * Loopback is not exempt.
 */
class Throttle {
  readonly #clock: Clock;
  /** In the order of their first failure. */
  readonly #failures = new Map<string, Failures>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Seconds until the address may try again, 0 if it may now. */
  waitSeconds(address: string): number {
    const known = this.#failures.get(networkOf(address));
    if (known === undefined) return 0;
    const leftMs = known.sinceMs + WINDOW_MS - this.#clock.monotonicMs();
    if (leftMs <= 0 || known.count < FAILURES_MAX) return 0;
    return Math.ceil(leftMs / 1_000);
  }

  /** Counts a failed attempt. */
  noteFailure(address: string): void {
    const network = networkOf(address);
    const nowMs = this.#clock.monotonicMs();
    const known = this.#failures.get(network);
    if (known !== undefined && nowMs - known.sinceMs < WINDOW_MS) {
      known.count++;
      return;
    }
    this.#failures.delete(network);
    this.#failures.set(network, { count: 1, sinceMs: nowMs });
    if (this.#failures.size <= ADDRESSES_MAX) return;
    const [oldest = ""] = this.#failures.keys();
    this.#failures.delete(oldest);
  }
}

function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("::");
  const groups = head.split(":").filter((group) => group !== "");
  const last = (tail ?? "").split(":").filter((group) => group !== "");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - last.length);
  return [...groups, ...Array.from({ length: zeros }, () => "0"), ...last].slice(0, 4).join(":");
}
