// The addresses that events may be sent to, from the configuration.
import { readFileSync } from "node:fs";
import { createAddressPolicy, type AddressPolicy } from "@platform/kernel/egress";
import { toLiveSecret, type Secret } from "@platform/kernel/secrets";
import type { EventPolicy } from "./target.ts";

/** Keys of the configuration. */
interface EventConfig {
  event_networks: Parameters<typeof createAddressPolicy>[0];
  event_broker_url?: string | undefined;
  event_broker_user?: string | undefined;
  event_broker_password?: Secret | undefined;
  event_broker_ca_file?: string | undefined;
}

/** Public addresses, the configured networks, and the platform's broker. Throws if its certificate file cannot be read. */
export function createEventPolicy(config: EventConfig): EventPolicy {
  const policy: AddressPolicy = createAddressPolicy(config.event_networks);
  const {
    event_broker_url: url,
    event_broker_user: user,
    event_broker_password: password,
    event_broker_ca_file: caFile,
  } = config;
  const ca = caFile === undefined ? undefined : readFileSync(caFile);
  const secret = password === undefined ? undefined : toLiveSecret(password);
  return {
    isAllowed: (address) => policy.isAllowed(address),
    get platformBroker() {
      return url === undefined ? undefined : { url, user, password: secret?.value, ca };
    },
  };
}
