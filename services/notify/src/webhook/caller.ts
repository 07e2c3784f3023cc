// Calls webhooks: at least once, each at its own pace, with retries over hours.
import { EgressError, type EgressFetch } from "@platform/kernel/egress";
import type { Logger } from "@platform/kernel/log";
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { WebhookRow } from "../database/webhook.ts";
import { signWebhook } from "./signature.ts";
import type { DueCall, Webhooks } from "./webhooks.ts";

/** Options of {@link WebhookCaller}. */
export interface WebhookCallerOptions {
  webhooks: Webhooks;
  /** Checks and pins addresses; does not follow redirects. */
  fetch: EgressFetch;
  clock: Clock;
  log: Logger;
}

const POLL_MS = 1_000;
const LEASE_MS = 60_000;
/** Concurrent calls of a webhook. */
const CALLS_MAX = 8;
const MINUTE_MS = 60_000;
/** Delays of the retries in minutes: about 16 hours in all. */
const RETRY_MINUTES = [1, 5, 15, 30, 45, 60, 72, 72, 72, 72, 72, 72, 72, 72, 72, 72];

/** Calls webhooks until it is stopped. */
export class WebhookCaller {
  readonly #options: WebhookCallerOptions;
  readonly #busy = new Map<string, Promise<void>>();
  #poll: RepeatingTimer | undefined;
  #isStopped = false;

  constructor(options: WebhookCallerOptions) {
    this.#options = options;
  }

  start(): void {
    const { log } = this.#options;
    this.#poll = every(
      POLL_MS,
      () => this.#start(),
      (error) => log.error("reading pending webhook calls failed", { error }),
    );
  }

  /** Makes due calls now; resolves when they have ended. */
  async run(): Promise<void> {
    await this.#poll?.run();
    await Promise.all(this.#busy.values());
  }

  /** Stops after the calls in flight. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#poll?.stop();
    await Promise.all(this.#busy.values());
  }

  // Each webhook has its own run, so that a slow target delays its own calls only.
  async #start(): Promise<void> {
    const { webhooks, log } = this.#options;
    for (const webhook of await webhooks.listKnown()) {
      if (this.#busy.has(webhook.id)) continue;
      const run = this.#drain(webhook)
        .catch((error: unknown) => log.error("calling a webhook failed", { error }))
        .finally(() => this.#busy.delete(webhook.id));
      this.#busy.set(webhook.id, run);
    }
  }

  async #drain(webhook: WebhookRow): Promise<void> {
    const { webhooks, clock } = this.#options;
    while (!this.#isStopped) {
      const nowMs = clock.now();
      const due = await webhooks.claim(webhook, nowMs, nowMs + LEASE_MS, CALLS_MAX);
      if (due.length === 0) return;
      await Promise.all(due.map((one) => this.#call(one)));
    }
  }

  async #call(due: DueCall): Promise<void> {
    const { webhooks, clock, log } = this.#options;
    const { call } = due;
    const failure = await this.#send(due);
    if (failure === undefined) {
      await webhooks.finish(call, "delivered", "");
      return;
    }
    const delay = RETRY_MINUTES[call.attempts];
    if (delay !== undefined) {
      await webhooks.finish(call, "pending", failure, clock.now() + delay * MINUTE_MS);
      return;
    }
    log.warn("a webhook call was given up", { webhook: call.webhook_id, call: call.id, failure });
    await webhooks.finish(call, "failed", failure);
  }

  /** Returns the reason of a failure. */
  async #send({ call, url, secrets }: DueCall): Promise<string | undefined> {
    const { fetch, clock } = this.#options;
    const timestampSeconds = Math.floor(clock.now() / 1000);
    const headers = {
      "content-type": "application/json",
      ...signWebhook({ id: call.id, timestampSeconds, body: call.payload }, secrets),
    };
    try {
      const { status } = await fetch(url, { method: "POST", headers, body: call.payload });
      return status >= 200 && status < 300 ? undefined : `the target returned ${status}`;
    } catch (error) {
      return error instanceof EgressError ? error.message : "the call failed";
    }
  }
}
