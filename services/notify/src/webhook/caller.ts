// Calls webhooks: at least once, each at its own pace, with retries over hours.
import type { Logger } from "@platform/kernel/log";
import { every, SetBackWatch, type RepeatingTimer } from "@platform/kernel/time";
import type { WebhookRow } from "../database/webhook.ts";
import {
  CALL_DELAY_MS_MAX,
  callTarget,
  planCall,
  type CallParts,
  type CallResult,
} from "./signed-call.ts";
import type { DueCall, Webhooks } from "./webhooks.ts";

/** Options of {@link WebhookCaller}. */
export interface WebhookCallerOptions extends CallParts {
  webhooks: Webhooks;
  log: Logger;
}

const POLL_MS = 1_000;
/** Longer than the timeout of a request. */
const LEASE_MS = 30_000;
/** Concurrent calls of a webhook. */
const CALLS_MAX = 8;

/** Calls webhooks until it is stopped. */
export class WebhookCaller {
  readonly #options: WebhookCallerOptions;
  readonly #busy = new Map<string, Promise<void>>();
  readonly #setBack = new SetBackWatch();
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
    const { webhooks, clock, log } = this.#options;
    const nowMs = clock.now();
    await this.#setBack.follow(nowMs, () => webhooks.moveUp(nowMs, nowMs + CALL_DELAY_MS_MAX));
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

  async #call({ call, url, secrets, isDamaged }: DueCall): Promise<void> {
    const { webhooks, clock, log } = this.#options;
    const { id, payload: body, attempts } = call;
    const result: CallResult = isDamaged
      ? { kind: "failed", detail: "the stored call is damaged" }
      : await callTarget(this.#options, { url, id, body, secrets, trace: call });
    const state = planCall(result, attempts, clock.now());
    await webhooks.finish(call, state);
    if (state.status !== "failed") return;
    log.warn("a webhook call failed finally", {
      webhook: call.webhook_id,
      call: id,
      failure: state.detail,
    });
  }
}
