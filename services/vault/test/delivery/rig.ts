// An outbox in memory, and a delivery that reads it.
import { after } from "node:test";
import { createAddressPolicy, createEgress } from "@platform/kernel/egress";
import { createLogger } from "@platform/kernel/log";
import { systemClock } from "@platform/kernel/time";
import type { DeadLetters } from "../../src/delivery/dead-letters.ts";
import { Delivery, type DeliveryOptions } from "../../src/delivery/delivery.ts";
import type { DeliveryTarget } from "../../src/delivery/target.ts";
import type { EventOutbox, PendingEvent } from "../../src/model/event.ts";

/** The key that webhook secrets are derived from. */
export const masterKey = Buffer.alloc(32, 7);

/** An outbox without a store. */
export class MemoryOutbox implements EventOutbox {
  readonly pending = new Map<number, PendingEvent>();
  readonly #listeners = new Set<() => void>();
  #lastId = 0;
  reads = 0;

  add(target: DeliveryTarget, change: Partial<PendingEvent> = {}): PendingEvent {
    const id = ++this.#lastId;
    const event: PendingEvent = {
      id,
      ruleId: "rule",
      target: target as unknown as Record<string, unknown>,
      name: "ObjectCreated:Put",
      bucket: "photos",
      key: `key ${id}/ä+b.txt`,
      versionId: "",
      sizeBytes: 5,
      etag: "5d41402abc4b2a76b9719d911017c592",
      timeMs: Date.now(),
      sequencer: id.toString(16).toUpperCase().padStart(16, "0"),
      actor: { principalId: "alice", sourceIp: "192.0.2.1", requestId: "REQ" },
      ...change,
    };
    this.pending.set(id, event);
    for (const listener of this.#listeners) listener();
    return event;
  }

  async read(max: number, afterId = 0): Promise<PendingEvent[]> {
    this.reads++;
    return [...this.pending.values()].filter(({ id }) => id > afterId).slice(0, max);
  }

  async acknowledge(ids: readonly number[]): Promise<void> {
    for (const id of ids) this.pending.delete(id);
  }

  onEvents(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** Dead letters in memory. */
export class MemoryDeadLetters implements DeadLetters {
  readonly letters: { id: number; reason: string; attempts: number }[] = [];

  async add(event: PendingEvent, reason: string, attempts: number): Promise<void> {
    this.letters.push({ id: event.id, reason, attempts });
  }
}

/** A delivery that may connect to this machine and has short timeouts; closed after the tests of the file. */
export function deliver(
  outbox: EventOutbox,
  options: Partial<DeliveryOptions> = {},
): { delivery: Delivery; deadLetters: MemoryDeadLetters; lines: string[] } {
  const deadLetters = new MemoryDeadLetters();
  const lines: string[] = [];
  const loopback = ["127.0.0.0/8"];
  const delivery = new Delivery({
    outbox,
    isWanted: () => true,
    deadLetters,
    fetch: createEgress({ allowedNetworks: loopback, timeoutMs: 2_000 }),
    policy: createAddressPolicy(loopback),
    masterKey,
    origin: { region: "us-east-1", ownerId: "owner" },
    log: createLogger({ service: "vault", format: "json", write: (line) => lines.push(line) }),
    clock: systemClock,
    random: () => 0.5,
    retryMs: 5,
    retryMsMax: 40,
    ...options,
  });
  after(() => delivery.close());
  return { delivery, deadLetters, lines };
}
