// Poll intervals of devices (RFC 8628 section 3.5), which the core does not enforce.
import { hash } from "node:crypto";
import type { Clock } from "@platform/kernel/time";

/** Minimum time between two polls in seconds, returned as `interval`. */
export const POLL_SECONDS = 5;

// Two polls may arrive closer together than they were sent.
const TOO_SOON_MS = (POLL_SECONDS - 1) * 1_000;
const DEVICES_MAX = 10_000;

/** Recent polls of devices on this node. */
export class DevicePolls {
  readonly #clock: Clock;
  /** Digest of the device code → time of the last poll, oldest first. */
  readonly #polledAt = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Records a poll; true if it came too early (`slow_down`). */
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
