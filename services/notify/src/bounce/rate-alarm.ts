// Alarm of the bounce rate: the share of hard bounces in the last hour.
import type { Clock } from "@platform/kernel/time";

export interface BounceRateAlarmOptions {
  clock: Clock;
  /** Share of hard bounces, 0 to 1, above which the alarm is raised. */
  rateMax: number;
}

const SLOT_MS = 5 * 60_000;
const SLOTS = 12;
/** Fewer deliveries say nothing about a rate. */
const DELIVERIES_MIN = 50;

interface Slot {
  index: number;
  delivered: number;
  bounced: number;
}

/** Counts deliveries and hard bounces of the last hour on this node. */
export class BounceRateAlarm {
  readonly #options: BounceRateAlarmOptions;
  readonly #slots: Slot[] = [];
  #isRaised = false;

  constructor(options: BounceRateAlarmOptions) {
    this.#options = options;
  }

  /** Counts a final result; returns the rate if it raised the alarm. */
  count(isBounce: boolean): number | undefined {
    const index = Math.floor(this.#options.clock.now() / SLOT_MS);
    let slot = this.#slots.at(-1);
    if (slot === undefined || slot.index !== index) {
      slot = { index, delivered: 0, bounced: 0 };
      this.#slots.push(slot);
      while (this.#slots[0]!.index <= index - SLOTS) this.#slots.shift();
    }
    slot[isBounce ? "bounced" : "delivered"] += 1;
    const rate = this.rate();
    const wasRaised = this.#isRaised;
    this.#isRaised = rate !== undefined && rate > this.#options.rateMax;
    return this.#isRaised && !wasRaised ? rate : undefined;
  }

  /** Reason of a raised alarm, for readiness. */
  describe(): string | undefined {
    const rate = this.rate();
    if (rate === undefined || rate <= this.#options.rateMax) return undefined;
    return `${Math.round(rate * 1000) / 10} % of the mails of the last hour bounced`;
  }

  /** Share of hard bounces in the last hour; undefined with few deliveries. */
  rate(): number | undefined {
    const oldest = Math.floor(this.#options.clock.now() / SLOT_MS) - SLOTS;
    let bounced = 0;
    let all = 0;
    for (const slot of this.#slots) {
      if (slot.index <= oldest) continue;
      bounced += slot.bounced;
      all += slot.bounced + slot.delivered;
    }
    return all < DELIVERIES_MIN ? undefined : bounced / all;
  }
}
