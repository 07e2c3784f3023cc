// The web console of mail.
import type { OperationOptions } from "@platform/chassis";
import type { NotifyConfig } from "../config.ts";

const FEATURES = [
  "analytics",
  "domains",
  "messages",
  "send",
  "suppressions",
  "templates",
  "webhooks",
];

/** Describes the console. Without credentials only programs on this machine have access. */
export function describeConsole(
  config: NotifyConfig,
  options: { hasCredentials: boolean; hasInbox: boolean },
): OperationOptions["console"] {
  return {
    features: [
      ...FEATURES,
      ...(options.hasInbox ? ["inbox"] : []),
      // Rules and aggregate reports need received mail.
      ...(config.inbound_port === undefined ? [] : ["inbound", "dmarc"]),
    ],
    credentials: options.hasCredentials ? "token" : undefined,
  };
}
