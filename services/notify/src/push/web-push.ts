// The parts of Web Push, put together.
import type { EgressFetch } from "@platform/kernel/egress";
import type { IdSource } from "@platform/kernel/ids";
import type { Logger } from "@platform/kernel/log";
import type { SecretBox } from "@platform/kernel/secrets";
import type { Clock } from "@platform/kernel/time";
import type { NotifyConfig } from "../config.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import { readKey } from "../database/secrets.ts";
import { PushDelivery } from "./delivery.ts";
import { PushSubscriptions } from "./subscriptions.ts";
import { Vapid } from "./vapid.ts";

/** Options of {@link createWebPush}. */
export interface WebPushOptions {
  config: NotifyConfig;
  database: NotifyDatabase;
  box: SecretBox;
  fetch: EgressFetch;
  clock: Clock;
  ids: IdSource;
  log: Logger;
}

export interface WebPush {
  subscriptions: PushSubscriptions;
  vapid: Vapid;
  delivery: PushDelivery;
  fetch: EgressFetch;
  allowsHttp: boolean;
}

/** Creates Web Push; its key pair is generated once. */
export async function createWebPush(options: WebPushOptions): Promise<WebPush> {
  const { config, database, box, fetch, clock, ids, log } = options;
  const contact =
    config["push.contact"] ?? `mailto:postmaster@${config.from_domain ?? "localhost"}`;
  const subscriptions = new PushSubscriptions({
    database,
    clock,
    ids,
    clientMax: config["push.client_subscriptions_max"],
    totalMax: config["push.subscriptions_max"],
  });
  const vapid = new Vapid(await readKey(database, box, "vapid_key"), contact);
  const delivery = new PushDelivery({ subscriptions, vapid, fetch, clock, log });
  return { subscriptions, vapid, delivery, fetch, allowsHttp: config.allow_private_targets };
}
