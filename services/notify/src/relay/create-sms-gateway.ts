// Creates the transport of SMS from the configuration.
import { createEgress } from "@platform/kernel/egress";
import type { NotifyConfig } from "../config.ts";
import type { Clock } from "@platform/kernel/time";
import type { Tracer } from "@platform/kernel/trace";
import type { NotifyDatabase } from "../database/schema.ts";
import type { Webhooks } from "../webhook/webhooks.ts";
import { SmsReceipts } from "./sms/receipts.ts";
import { SmsGateway } from "./sms/sms-gateway.ts";

const CALLS_MAX = 64;

/** Creates the transport; undefined if no gateway is configured. Throws if a template is invalid. */
export function createSmsGateway(config: NotifyConfig, tracer: Tracer): SmsGateway | undefined {
  if (config["sms.preset"] === undefined && config["sms.url"] === undefined) return undefined;
  return new SmsGateway({
    preset: config["sms.preset"] ?? "json",
    shape: {
      url: config["sms.url"],
      headers: config["sms.headers"],
      body: config["sms.body"],
      idField: config["sms.id_field"],
      statusField: config["sms.status_field"],
      statusAccepted: config["sms.status_accepted"],
    },
    account: config["sms.account"],
    secret: config["sms.secret"],
    from: config["sms.from"],
    tracer,
    fetch: createEgress({
      timeoutMs: config["sms.timeout_ms"],
      callsMax: CALLS_MAX,
      allowedNetworks: config.allow_private_targets ? ["0.0.0.0/0", "::/0"] : [],
    }),
  });
}

/** Options of {@link createSmsReceipts}. */
export interface SmsReceiptsParts {
  config: NotifyConfig;
  database: NotifyDatabase;
  webhooks: Webhooks;
  clock: Clock;
}

/** Creates the receipts of the gateway. */
export function createSmsReceipts({ config, ...parts }: SmsReceiptsParts): SmsReceipts {
  const secrets = { receipt: config["sms.receipt_secret"], api: config["sms.secret"] };
  return new SmsReceipts({ ...parts, preset: config["sms.preset"] ?? "json", secrets });
}
