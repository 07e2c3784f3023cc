// How often devices ask for their tokens (RFC 8628 section 3.5), of which the core keeps no account.
import { hash } from "node:crypto";
import type { Clock } from "@platform/kernel/time";

/** How long a device waits between two polls, in seconds: `interval` of its authorization. */
export const POLL_SECONDS = 5;

// Networks deliver two polls closer to each other than they were sent.
const TOO_SOON_MS = (POLL_SECONDS - 1) * 1_000;
const DEVICES_MAX = 10_000;

/** The polls that this node has seen of devices whose users have not answered yet. */
export class DevicePolls {
  readonly #clock: Clock;
  /** Digest of the device code → when it was polled last; the oldest poll first. */
  readonly #polledAt = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Notes a poll; whether it came sooner than it should have: `slow_down`. */
  note(deviceCode: string): boolean {
    const device = hash("sha256", deviceCode, "base64");
    const now = this.#clock.monotonicMs();
    const before = this.#polledAt.get(device);
    this.#polledAt.delete(device);
    this.#polledAt.set(device, now);
    if (this.#polledAt.size > DEVICES_MAX) {
      const oldest = this.#polledAt.keys().next();
      if (oldest.done !== true) this.#polledAt.delete(oldest.value);
    }
    return before !== undefined && now - before < TOO_SOON_MS;
  }
}
