// The identity service's entry.
import { join } from "node:path";
import { formatAddress } from "@platform/kernel/config";
import { formatUrl, getAddress } from "./entry.ts";
import type { ServiceEntry } from "./entry.ts";

/** The identity service. */
export const authEntry: ServiceEntry = {
  name: "auth",
  label: "identity",
  main: import.meta.resolve("@platform/auth/main"),
  listeners: [
    {
      name: "http",
      key: "auth_addr",
      env: "PLATFORM_AUTH_ADDR",
      default: "127.0.0.1:8086",
      description: "Where the identity service listens.",
    },
  ],
  credentials: [],
  routes: [],
  configure: (context) => ({
    args: [],
    env: {
      PLATFORM_AUTH_ADDR: formatAddress(getAddress(context, "auth_addr")),
      PLATFORM_AUTH_DATA_DIR: join(context.dataDir, "auth"),
      ...(context.running.some(({ name }) => name === "gate") ? trustGateway() : {}),
    },
  }),
  describe: (context) => {
    const url = formatUrl(getAddress(context, "auth_addr"));
    return `account ${url}/account · docs ${url}/api/docs`;
  },
  trials: () => [],
};

// Behind the gateway of this machine everybody would have its address otherwise, and share the bounds of one address.
function trustGateway(): Record<string, string> {
  const chosen = process.env["PLATFORM_AUTH_TRUSTED_PROXIES"];
  return chosen === undefined ? { PLATFORM_AUTH_TRUSTED_PROXIES: "127.0.0.0/8,::1" } : {};
}
