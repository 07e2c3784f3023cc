// The addresses that events may be sent to, from the configuration.
import { createAddressPolicy, type AddressPolicy } from "@platform/kernel/egress";
import type { EventPolicy } from "./target.ts";

/** Keys of the configuration. */
interface EventConfig {
  event_networks: Parameters<typeof createAddressPolicy>[0];
  event_broker_url?: string | undefined;
  event_broker_user?: string | undefined;
  event_broker_password?: string | undefined;
}

/** Public addresses, the configured networks, and the platform's broker. */
export function createEventPolicy(config: EventConfig): EventPolicy {
  const policy: AddressPolicy = createAddressPolicy(config.event_networks);
  const {
    event_broker_url: url,
    event_broker_user: user,
    event_broker_password: password,
  } = config;
  return {
    isAllowed: (address) => policy.isAllowed(address),
    platformBroker: url === undefined ? undefined : { url, user, password },
  };
}
