// Paces uploads to a number of bytes per second.
import { setTimeout as sleep } from "node:timers/promises";
import type { Clock } from "@platform/kernel/time";

/** Lets bytes pass one after another; the first second's worth at once. */
export class UploadRate {
  readonly #bytesPerSecond: number;
  readonly #clock: Clock;
  /** The time at which everything that was let through is paid for. */
  #paidAtMs = 0;

  /** 0 means unlimited. */
  constructor(bytesPerSecond: number, clock: Clock) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#clock = clock;
  }

  /** Waits until `bytes` more may be sent. */
  async pass(bytes: number): Promise<void> {
    if (this.#bytesPerSecond === 0) return;
    const nowMs = this.#clock.monotonicMs();
    const waitMs = this.#paidAtMs - nowMs - 1_000;
    this.#paidAtMs = Math.max(this.#paidAtMs, nowMs) + (bytes * 1_000) / this.#bytesPerSecond;
    if (waitMs > 0) await sleep(waitMs);
  }
}
