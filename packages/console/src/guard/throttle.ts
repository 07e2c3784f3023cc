// Limits failed sign-ins per address.
import { createRetryLaterError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";

const FAILURES_MAX = 10;
const WINDOW_MS = 900_000;
/** Further addresses replace the oldest. */
const ADDRESSES_MAX = 10_000;

/** Counts failures; `check` throws 429 after ten failures of an address within 15 minutes. */
export class SignInThrottle {
  readonly #clock: Clock;
  readonly #failures = new Map<string, { count: number; sinceMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts an attempt before it is checked, so that concurrent ones count; throws 429 if there were too many. */
  begin(address: string): void {
    const name = nameNetwork(address);
    const now = this.#clock.now();
    const known = this.#failures.get(name);
    const failures =
      known === undefined || known.sinceMs + WINDOW_MS <= now ? { count: 0, sinceMs: now } : known;
    if (failures.count >= FAILURES_MAX) {
      const leftMs = failures.sinceMs + WINDOW_MS - now;
      const detail = "There were too many failed sign-ins from this address.";
      throw createRetryLaterError("too_many_requests", detail, leftMs / 1_000);
    }
    failures.count += 1;
    if (known === undefined && this.#failures.size >= ADDRESSES_MAX) {
      this.#failures.delete(this.#failures.keys().next().value!);
    }
    this.#failures.set(name, failures);
  }

  /** The attempt was not a wrong credential. */
  forgive(address: string): void {
    const failures = this.#failures.get(nameNetwork(address));
    if (failures !== undefined && failures.count > 0) failures.count -= 1;
  }

  /** The attempt succeeded. */
  succeed(address: string): void {
    this.#failures.delete(nameNetwork(address));
  }
}

// The /64 of an IPv6 address belongs to one subscriber.
function nameNetwork(address: string): string {
  if (!address.includes(":") || address.toLowerCase().startsWith("::ffff:")) return address;
  const [head = "", tail] = address.split("::");
  const before = head.split(":").filter(Boolean);
  const after = (tail ?? "").split(":").filter(Boolean);
  const zeros =
    tail === undefined ? [] : Array.from({ length: 8 - before.length - after.length }, () => "0");
  return [...before, ...zeros, ...after].slice(0, 4).join(":");
}
