// The web console of mail.
import { ServiceConsole } from "@platform/console";
import { createBearerGuard } from "@platform/kernel/http";
import type { TokenVerifier } from "@platform/kernel/identity";
import type { Clock } from "@platform/kernel/time";
import { VERSION, type NotifyConfig } from "../config.ts";

const FEATURES = [
  "analytics",
  "domains",
  "messages",
  "send",
  "suppressions",
  "templates",
  "webhooks",
];

/** Creates the console. Without a verifier only programs on this machine have access. */
export function createConsole(options: {
  config: NotifyConfig;
  verifier: TokenVerifier | undefined;
  hasInbox: boolean;
  clock: Clock;
}): ServiceConsole {
  const { config, verifier, hasInbox, clock } = options;
  return new ServiceConsole({
    id: "notify",
    version: VERSION,
    features: [
      ...FEATURES,
      ...(hasInbox ? ["inbox"] : []),
      // Rules and aggregate reports need received mail.
      ...(config.inbound_port === undefined ? [] : ["inbound", "dmarc"]),
    ],
    credentials: verifier === undefined ? undefined : "token",
    guard: createBearerGuard(verifier),
    publicUrl: config.console_url,
    isTls: config.tls_cert !== undefined,
    clock,
  });
}
