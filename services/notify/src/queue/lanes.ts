// Deliveries that are ready, in memory: a lane per class, client and domain, served in turn.
import { QUEUE_CLASSES, type Delivery, type QueueClass } from "../delivery.ts";

/** Bounds of the deliveries in memory. */
export interface LanesOptions {
  /** Maximum number of deliveries per class. */
  deliveriesMax: number;
  /** Maximum number of deliveries per lane. */
  laneDeliveriesMax: number;
  /** Maximum size of their contents in bytes; a single message may exceed it. */
  bytesMax: number;
}

interface Lane {
  key: string;
  waiting: Delivery[];
}

// Order of the classes in successive turns: transactional first; bulk and retries get at least every eighth turn.
const USUAL: readonly QueueClass[] = [0, 1, 2];
const TURNS: readonly (readonly QueueClass[])[] = [
  USUAL,
  USUAL,
  USUAL,
  [1, 2, 0],
  USUAL,
  USUAL,
  USUAL,
  [2, 1, 0],
];

/**
 * Ready deliveries.
 *
 *   class 0  [ada → a.example] [bob → b.example] …    the lane that was served goes to the end
 *   class 1  …
 *   class 2  …
 */
export class Lanes {
  readonly #options: LanesOptions;
  readonly #lanes = new Map<QueueClass, Map<string, Lane>>(
    QUEUE_CLASSES.map((queueClass): [QueueClass, Map<string, Lane>] => [queueClass, new Map()]),
  );
  readonly #sizes = new Map<QueueClass, number>(
    QUEUE_CLASSES.map((queueClass): [QueueClass, number] => [queueClass, 0]),
  );
  #bytes = 0;
  #turn = 0;

  constructor(options: LanesOptions) {
    this.#options = options;
  }

  /** Number of deliveries of a class that may be added. */
  room(queueClass: QueueClass): number {
    if (this.#bytes >= this.#options.bytesMax) return 0;
    return this.#options.deliveriesMax - this.#sizes.get(queueClass)!;
  }

  /** Number of deliveries of a lane that may be added. */
  laneRoom(queueClass: QueueClass, client: string, domain: string): number {
    const lane = this.#lanes.get(queueClass)!.get(toKey(client, domain));
    const room = this.#options.laneDeliveriesMax - (lane?.waiting.length ?? 0);
    return Math.min(room, this.room(queueClass));
  }

  /** Number of all deliveries. */
  get size(): number {
    return QUEUE_CLASSES.reduce<number>((sum, queueClass) => sum + this.#sizes.get(queueClass)!, 0);
  }

  add(delivery: Delivery): void {
    const { queueClass, domain, message } = delivery;
    const lanes = this.#lanes.get(queueClass)!;
    const key = toKey(message.client, domain);
    const lane = lanes.get(key) ?? { key, waiting: [] };
    lane.waiting.push(delivery);
    lanes.set(key, lane);
    this.#count(delivery, 1);
  }

  /** Removes and returns the next delivery that `isOpen` accepts; lanes are asked by their first delivery. */
  take(isOpen: (delivery: Delivery) => boolean): Delivery | undefined {
    const order = TURNS[this.#turn % TURNS.length]!;
    this.#turn += 1;
    for (const queueClass of order) {
      const lanes = this.#lanes.get(queueClass)!;
      for (const lane of lanes.values()) {
        if (!isOpen(lane.waiting[0]!)) continue;
        const delivery = lane.waiting.shift()!;
        lanes.delete(lane.key);
        if (lane.waiting.length > 0) lanes.set(lane.key, lane);
        this.#count(delivery, -1);
        return delivery;
      }
    }
    return undefined;
  }

  /** Removes and returns all deliveries that `matches` accepts. */
  remove(matches: (delivery: Delivery) => boolean): Delivery[] {
    const removed: Delivery[] = [];
    for (const lanes of this.#lanes.values()) {
      for (const lane of lanes.values()) {
        const gone = lane.waiting.filter(matches);
        if (gone.length === 0) continue;
        lane.waiting = lane.waiting.filter((delivery) => !matches(delivery));
        if (lane.waiting.length === 0) lanes.delete(lane.key);
        for (const delivery of gone) this.#count(delivery, -1);
        removed.push(...gone);
      }
    }
    return removed;
  }

  #count({ queueClass, message }: Delivery, sign: 1 | -1): void {
    this.#sizes.set(queueClass, this.#sizes.get(queueClass)! + sign);
    this.#bytes += sign * message.content.length;
  }
}

function toKey(client: string, domain: string): string {
  return `${client}\n${domain}`;
}
