// Delivery through the configured relays: by weight, with fail-over to the others.
import type { Delivery, Outcome, Transport } from "../delivery.ts";
import type { PrepareMail } from "./prepare.ts";
import { SmtpServer, type SmtpServerOptions } from "./smtp/server.ts";

export interface RelayOptions extends SmtpServerOptions {
  /** Share of the messages, relative to the other relays; 0 for relays that are used only if the others fail. */
  weight: number;
}

/** Options of {@link RelayGroup}. */
export interface RelayGroupOptions {
  /** At least one. */
  relays: readonly RelayOptions[];
  prepare: PrepareMail;
  /** Monotonic time in ms. */
  now: () => number;
  /** A number from 0 to 1. */
  random: () => number;
}

interface Relay {
  server: SmtpServer;
  weight: number;
  downUntilMs: number;
}

/** An unreachable relay is avoided for this time if there are others. */
const DOWN_MS = 15_000;

/** All relays. They are one destination: while one of them works, deliveries continue. */
export class RelayGroup implements Transport {
  readonly #options: RelayGroupOptions;
  #relays: Relay[];

  constructor(options: RelayGroupOptions) {
    this.#options = options;
    this.#relays = openRelays(options.relays);
  }

  /** Sends from now on through these relays, at least one; messages that are being sent stay with theirs. */
  replace(relays: readonly RelayOptions[]): void {
    const former = this.#relays;
    this.#relays = openRelays(relays);
    for (const { server } of former) server.close();
  }

  destinationOf(): string {
    return "relay";
  }

  async deliver(delivery: Delivery, signal: AbortSignal): Promise<Outcome> {
    const { envelope, parts } = await this.#options.prepare(delivery);
    let last: Outcome | undefined;
    for (const relay of this.#chooseOrder()) {
      const outcome = await relay.server.send(envelope, parts, signal);
      if (outcome.kind !== "unreachable") {
        relay.downUntilMs = 0;
        return outcome;
      }
      relay.downUntilMs = this.#options.now() + DOWN_MS;
      last = { kind: "deferred", cause: "relay", reply: outcome.reply, mayHaveArrived: false };
      if (signal.aborted) break;
    }
    return last!;
  }

  close(): void {
    for (const { server } of this.#relays) server.close();
  }

  // Reachable relays before others; within each group a random order by weight.
  #chooseOrder(): Relay[] {
    if (this.#relays.length === 1) return this.#relays;
    const nowMs = this.#options.now();
    const keyed = this.#relays.map((relay) => ({
      relay,
      isDown: relay.downUntilMs > nowMs,
      // Efraimidis and Spirakis: the largest u^(1/w) is chosen with a probability in proportion to w.
      key: relay.weight === 0 ? -1 : this.#options.random() ** (1 / relay.weight),
    }));
    return keyed
      .toSorted((a, b) => Number(a.isDown) - Number(b.isDown) || b.key - a.key)
      .map(({ relay }) => relay);
  }
}

function openRelays(relays: readonly RelayOptions[]): Relay[] {
  return relays.map((relay) => ({
    server: new SmtpServer(relay),
    weight: relay.weight,
    downUntilMs: 0,
  }));
}
