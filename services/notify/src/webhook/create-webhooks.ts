// The parts of webhooks, put together.
import { createEgress, type EgressFetch } from "@platform/kernel/egress";
import type { IdSource } from "@platform/kernel/ids";
import type { Logger } from "@platform/kernel/log";
import type { SecretBox } from "@platform/kernel/secrets";
import type { Clock } from "@platform/kernel/time";
import type { Tracer } from "@platform/kernel/trace";
import type { NotifyConfig } from "../config.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import { WebhookCaller } from "./caller.ts";
import { SigningSecrets } from "./signing-secrets.ts";
import { Webhooks } from "./webhooks.ts";

/** Options of {@link createWebhooks}. */
export interface CreateWebhooksOptions {
  config: NotifyConfig;
  database: NotifyDatabase;
  /** See `claimMark`. */
  leaseMark: number;
  box: SecretBox;
  tracer: Tracer;
  clock: Clock;
  ids: IdSource;
  log: Logger;
}

const TIMEOUT_MS = 15_000;
const CALLS_MAX = 256;

/** Creates the webhooks and their caller; `fetchTarget` sends requests to targets that users chose. */
export function createWebhooks(options: CreateWebhooksOptions): {
  webhooks: Webhooks;
  caller: WebhookCaller;
  fetchTarget: EgressFetch;
} {
  const { config, database, leaseMark, box, tracer, clock, ids, log } = options;
  const webhooks = new Webhooks({
    database,
    leaseMark,
    clock,
    ids,
    secrets: new SigningSecrets({ box, clock, table: "notify_webhooks" }),
    onCalls: () => void caller.run(),
  });
  const fetchTarget = createEgress({
    timeoutMs: TIMEOUT_MS,
    callsMax: CALLS_MAX,
    allowedNetworks: config.allow_private_targets ? ["0.0.0.0/0", "::/0"] : [],
  });
  const caller: WebhookCaller = new WebhookCaller({
    webhooks,
    fetch: fetchTarget,
    tracer,
    clock,
    log,
  });
  return { webhooks, caller, fetchTarget };
}
