// A route with a canary under live traffic.
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { startUpstream, type Platform } from "../../../identity/platform.ts";

const PACE_MS = 20;
const PATIENCE_MS = 60_000;
/** Requests in a row to the stable target that a canary with 30 % would not miss. */
const IN_A_ROW = 60;

type Upstream = Awaited<ReturnType<typeof startUpstream>>;

/** The route, its two targets, and a client that sends requests while a task needs them. */
export class Canary {
  static readonly prefix = "/shop";
  readonly #platform: Platform;
  readonly #stable: Upstream;
  readonly #canary: Upstream;
  /** Requests that are being sent. */
  #traffic: { isStopped: boolean; ended: Promise<void> } | undefined;
  /** Answers of the targets, newest last. */
  #answers: string[] = [];
  #failures: string[] = [];
  #weight = 30;

  private constructor(platform: Platform, stable: Upstream, canary: Upstream) {
    this.#platform = platform;
    this.#stable = stable;
    this.#canary = canary;
  }

  static async start(platform: Platform): Promise<Canary> {
    const [stable, canary] = await Promise.all(
      ["stable", "canary"].map((name) =>
        startUpstream((_incoming, response) => response.end(name)),
      ),
    );
    const started = new Canary(platform, stable!, canary!);
    await started.#addRoute();
    return started;
  }

  /** Begins to send requests, and waits until the canary has answered. */
  async waitForTraffic(): Promise<void> {
    this.#answers = [];
    this.#traffic ??= this.#startTraffic();
    await this.#waitFor((answers) => answers.includes("canary"), "the canary gets no request");
  }

  /** Waits until only the stable target answers; no request may have failed. */
  async waitForStable(): Promise<void> {
    await this.#waitFor(
      (answers) =>
        answers.length >= IN_A_ROW && answers.slice(-IN_A_ROW).every((one) => one === "stable"),
      "the canary still gets requests",
    );
    assert.deepEqual(this.#failures, [], "failed requests");
  }

  /** Ends the requests, and begins with a new canary: other weights than those that were rolled back. */
  async restart(): Promise<void> {
    await this.#endTraffic();
    this.#weight += 1;
    await this.#addRoute();
    this.#failures = [];
  }

  async stop(): Promise<void> {
    await this.#endTraffic();
    this.#stable.close();
    this.#canary.close();
  }

  async #addRoute(): Promise<void> {
    await this.#platform.addRoute({
      prefix: Canary.prefix,
      targets_weighted: [
        { url: this.#stable.url, weight: 100 - this.#weight },
        { url: this.#canary.url, weight: this.#weight },
      ],
      canary_auto_promote: true,
      canary_promote_sec: 3_600,
      auth: { type: "none" },
    });
  }

  #startTraffic(): { isStopped: boolean; ended: Promise<void> } {
    const traffic = { isStopped: false, ended: Promise.resolve() };
    traffic.ended = this.#send(traffic);
    return traffic;
  }

  async #endTraffic(): Promise<void> {
    if (this.#traffic === undefined) return;
    this.#traffic.isStopped = true;
    await this.#traffic.ended;
    this.#traffic = undefined;
  }

  async #send(traffic: { readonly isStopped: boolean }): Promise<void> {
    while (!traffic.isStopped) {
      try {
        const { status, text } = await this.#platform.ask(Canary.prefix);
        if (status === 200) this.#answers.push(text);
        else this.#failures.push(String(status));
      } catch (error) {
        this.#failures.push(String(error));
      }
      await delay(PACE_MS);
    }
  }

  async #waitFor(holds: (answers: readonly string[]) => boolean, problem: string): Promise<void> {
    const endsMs = performance.now() + PATIENCE_MS;
    while (!holds(this.#answers)) {
      assert.ok(performance.now() < endsMs, problem);
      await delay(PACE_MS);
    }
  }
}
