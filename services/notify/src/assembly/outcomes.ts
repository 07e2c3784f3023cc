// The queue, and what follows from the results of deliveries: suppressions, webhooks, the alarm.
import type { Service } from "@platform/chassis";
import type { EgressFetch } from "@platform/kernel/egress";
import { BounceRateAlarm } from "../bounce/rate-alarm.ts";
import type { NotifyConfig } from "../config.ts";
import { createNotifyMetrics, type NotifyMetrics } from "../metrics.ts";
import { ResultRecorder } from "../queue/result-recorder.ts";
import { QueueStore } from "../queue/store.ts";
import { Suppressions } from "../suppression/suppressions.ts";
import type { WebhookCaller } from "../webhook/caller.ts";
import { createWebhooks } from "../webhook/create-webhooks.ts";
import type { Webhooks } from "../webhook/webhooks.ts";
import type { Storage } from "./storage.ts";

/** The parts. */
export interface Outcomes {
  readonly metrics: NotifyMetrics;
  readonly suppressions: Suppressions;
  readonly webhooks: Webhooks;
  readonly caller: WebhookCaller;
  /** Sends requests to targets that users chose. */
  readonly fetchTarget: EgressFetch;
  readonly recorder: ResultRecorder;
  readonly store: QueueStore;
}

/** Opens the queue; what a former process had claimed is due again. The caller of webhooks is not started. */
export async function openOutcomes(
  config: NotifyConfig,
  service: Service,
  { database, box, leaseMark }: Storage,
): Promise<Outcomes> {
  const { tracer, clock, ids, log, lifecycle, health } = service;
  const metrics = createNotifyMetrics(service.metrics);
  const suppressions = new Suppressions(database);
  const hooks = createWebhooks({ config, database, leaseMark, box, tracer, clock, ids, log });
  const { webhooks, caller } = hooks;
  lifecycle.onDrain("webhooks", () => caller.stop());
  const alarm = new BounceRateAlarm({ clock, rateMax: config.bounce_rate_max });
  health.addWarning("bounce_rate", () => alarm.describe());
  const recorder = new ResultRecorder({ suppressions, webhooks, alarm, metrics, clock, log });
  const store = new QueueStore({
    database,
    clock,
    leaseMark,
    onResults: (trx, results) => recorder.record(trx, results),
  });
  await store.releaseOwn(clock.now());
  await webhooks.releaseOwn(clock.now());
  return { metrics, suppressions, ...hooks, recorder, store };
}
