// Table entry of identity.
import { join } from "node:path";
import { formatAddress } from "@platform/kernel/config";
import { formatUrl, getAddress, type EntryContext, type ServiceEntry } from "./entry.ts";
import { formatIssuer, REVOCATIONS_TOKEN, trustGateway } from "./identity.ts";
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
  credentials: [REVOCATIONS_TOKEN],
  // Links and cookies of its pages depend on the host, so the path is not changed.
  routes: [
    { prefix: "/", subdomain: "identity", stripPrefix: false, open: true, listener: "http" },
  ],
  configure: (context) => ({
    args: [],
    env: {
      PLATFORM_AUTH_ADDR: formatAddress(getAddress(context, "auth_addr")),
      PLATFORM_AUTH_DATA_DIR: join(context.dataDir, "auth"),
      PLATFORM_AUTH_REVOCATIONS_TOKEN: context.credentials[REVOCATIONS_TOKEN] ?? "",
      ...chooseDefaults(context),
      ...trustGateway("auth", context, process.env),
      ...sendMail(context),
    },
  }),
  describe: (context) => {
    const url = formatIssuer(context, process.env);
    return `account ${url}/account · docs ${formatUrl(getAddress(context, "auth_addr"))}/api/docs`;
  },
  trials: () => [],
};

/** Tenant of users who have no other: messaging refuses tokens without a tenant. */
const DEFAULT_TENANT = "main";

// The operator's settings take precedence.
function chooseDefaults(context: EntryContext): Record<string, string> {
  const chosen = (name: string): boolean => (process.env[name] ?? "") !== "";
  return {
    ...(chosen("PLATFORM_AUTH_DEFAULT_TENANT")
      ? {}
      : { PLATFORM_AUTH_DEFAULT_TENANT: DEFAULT_TENANT }),
    ...(chosen("PLATFORM_AUTH_PUBLIC_URL") || context.domain === undefined
      ? {}
      : { PLATFORM_AUTH_PUBLIC_URL: formatIssuer(context, process.env) }),
  };
}

// A mail service that the operator chose takes precedence.
function sendMail(context: EntryContext): Record<string, string> {
  if (process.env[NOTIFY_URL] !== undefined) return {};
  return describeMail(context, NOTIFY_URL, "PLATFORM_AUTH_NOTIFY_TOKEN");
}
