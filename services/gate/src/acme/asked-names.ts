// Names of handshakes without a certificate: a service decides which of them may have one. No handshake waits for it.
import { createEgress, type EgressFetch } from "@platform/kernel/egress";
import type { Logger } from "@platform/kernel/log";
import { isServerName } from "../shared-state/index.ts";

const ANY_NETWORK = ["0.0.0.0/0", "::/0"];
const TIMEOUT_MS = 5_000;
const ANSWER_BYTES_MAX = 65_536;
const ASKING_MAX = 4;
const HOUR_MS = 3_600_000;
const YES_MS = HOUR_MS;
const NO_MS = 600_000;
const ANSWERS_MAX = 10_000;
const NEW_PER_HOUR = 10;
const NAMES_MAX = 1_000;

/** Options of {@link AskedNames}. */
export interface AskedNamesOptions {
  /** Service that is asked with `?domain=NAME`: 200 is yes. */
  url: string;
  /** Called when a name is added. */
  onAdded: () => void;
  log: Logger;
  readNowMs: () => number;
}

/** The names that were asked for. */
export class AskedNames {
  readonly #options: AskedNamesOptions;
  readonly #fetch: EgressFetch = createEgress({
    allowedNetworks: ANY_NETWORK,
    timeoutMs: TIMEOUT_MS,
    answerBytesMax: ANSWER_BYTES_MAX,
    callsMax: ASKING_MAX,
  });
  readonly #names = new Set<string>();
  /** Ends of refusals and of questions in flight, ms since 1970; the oldest first. */
  readonly #known = new Map<string, number>();
  #added: number[] = [];
  #asking = 0;
  #warnedAtMs = -Infinity;

  constructor(options: AskedNamesOptions) {
    this.#options = options;
  }

  /** Adds names that have certificates already. */
  adopt(names: Iterable<string>): void {
    for (const name of names) this.#names.add(name);
  }

  /** The names with a certificate, or an order. */
  list(): readonly string[] {
    return [...this.#names];
  }

  /** Notes the name of a handshake that has failed. */
  async note(name: string): Promise<void> {
    const now = this.#options.readNowMs();
    if (this.#names.has(name) || (this.#known.get(name) ?? 0) > now) return;
    if (!isServerName(name) || !name.includes(".")) return;
    this.#added = this.#added.filter((at) => at > now - HOUR_MS);
    if (this.#added.length >= NEW_PER_HOUR || this.#names.size >= NAMES_MAX) {
      this.#warn(now);
      return;
    }
    if (this.#asking >= ASKING_MAX) return;
    this.#remember(name, now + YES_MS);
    this.#asking += 1;
    try {
      const isAllowed = await this.#ask(name);
      if (!isAllowed) this.#remember(name, this.#options.readNowMs() + NO_MS);
      // Others were added meanwhile.
      else if (this.#added.length < NEW_PER_HOUR) {
        this.#added.push(now);
        this.#names.add(name);
        this.#options.onAdded();
      }
    } finally {
      this.#asking -= 1;
    }
  }

  async #ask(name: string): Promise<boolean> {
    const url = new URL(this.#options.url);
    url.searchParams.set("domain", name);
    try {
      return (await this.#fetch(url)).status === 200;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.log.warn("cannot ask whether a name may have a certificate", { name, reason });
      return false;
    }
  }

  #remember(name: string, untilMs: number): void {
    this.#known.delete(name);
    this.#known.set(name, untilMs);
    const [oldest] = this.#known.keys();
    if (this.#known.size > ANSWERS_MAX && oldest !== undefined) this.#known.delete(oldest);
  }

  #warn(now: number): void {
    if (now - this.#warnedAtMs < HOUR_MS) return;
    this.#warnedAtMs = now;
    this.#options.log.warn("no more names are asked for now", {
      per_hour: NEW_PER_HOUR,
      names: this.#names.size,
      names_max: NAMES_MAX,
    });
  }
}
