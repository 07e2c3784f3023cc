// Table entry of identity.
import { join } from "node:path";
import { formatAddress } from "@platform/kernel/config";
import { formatUrl, getAddress, type EntryContext, type ServiceEntry } from "./entry.ts";
import { describeMail } from "./notify.ts";

const NOTIFY_URL = "PLATFORM_AUTH_PLATFORM_NOTIFY_URL";

/** Identity. */
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
      description: "Listening address of identity.",
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
      ...sendMail(context),
    },
  }),
  describe: (context) => {
    const url = formatUrl(getAddress(context, "auth_addr"));
    return `account ${url}/account · docs ${url}/api/docs`;
  },
  trials: () => [],
};

// Without this, all clients behind the local gateway would share its address, and the limits per address.
function trustGateway(): Record<string, string> {
  const chosen = process.env["PLATFORM_AUTH_TRUSTED_PROXIES"];
  return chosen === undefined ? { PLATFORM_AUTH_TRUSTED_PROXIES: "127.0.0.0/8,::1" } : {};
}

// A mail service that the operator chose takes precedence.
function sendMail(context: EntryContext): Record<string, string> {
  if (process.env[NOTIFY_URL] !== undefined) return {};
  return describeMail(context, NOTIFY_URL, "PLATFORM_AUTH_NOTIFY_TOKEN");
}
