// Table entry of mail.
import { join } from "node:path";
import { formatAddress } from "@platform/kernel/config";
import { allowBackups, BACKUP_TOKEN } from "./backup.ts";
import {
  formatLocalHost,
  formatUrl,
  getAddress,
  isRunning,
  type EntryContext,
  type ServiceEntry,
} from "./entry.ts";
import { secureMail } from "./certificates.ts";
import { REVOCATIONS_TOKEN, wireIdentity } from "./identity.ts";

/** Environment variable of the operator's token. */
export const NOTIFY_TOKEN = "PLATFORM_NOTIFY_TOKEN";
const PUBLIC_URL = "PLATFORM_NOTIFY_PUBLIC_URL";

/** Mail. */
export const notifyEntry: ServiceEntry = {
  name: "notify",
  label: "mail",
  main: import.meta.resolve("@platform/notify/main"),
  listeners: [
    {
      name: "http",
      key: "mail_addr",
      env: "PLATFORM_NOTIFY_ADDR",
      default: "127.0.0.1:8094",
      description: "Listening address of mail.",
    },
  ],
  probes: "http",
  backup: { listener: "http" },
  // Recovery links are in the development inbox, so that it is never open to all programs of the machine.
  credentials: [NOTIFY_TOKEN, BACKUP_TOKEN],
  uses: [REVOCATIONS_TOKEN],
  // Mail authenticates callers itself.
  routes: [{ prefix: "/notify", stripPrefix: true, open: true, listener: "http" }],
  configure: (context) => ({
    args: [],
    env: {
      PLATFORM_NOTIFY_ADDR: formatAddress(getAddress(context, "mail_addr")),
      PLATFORM_NOTIFY_DATA_DIR: join(context.dataDir, "notify"),
      ...allowBackups(context),
      [NOTIFY_TOKEN]: context.credentials[NOTIFY_TOKEN] ?? "",
      ...choosePublicUrl(context, process.env),
      ...wireIdentity("notify", context, process.env),
      ...secureMail(context, process.env),
    },
  }),
  describe: (context) => {
    const url = formatUrl(getAddress(context, "mail_addr"));
    return `behind the gateway at /notify · docs ${url}/api/docs`;
  },
  trials: (context) => [
    {
      command: `(. ${context.credentialsShown}; curl -H "Authorization: Bearer $${NOTIFY_TOKEN}" ${formatLocalHost(getAddress(context, "mail_addr"))}/api/v1/inbox)`,
      meaning: "list the mails of the development inbox",
    },
  ],
};

// Links in mails lead through the gateway. The operator's setting takes precedence.
function choosePublicUrl(
  context: EntryContext,
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  if ((env[PUBLIC_URL] ?? "") !== "" || !isRunning("gate", context)) return {};
  const gateway = getAddress(context, "gateway_addr");
  if (context.domain !== undefined) return { [PUBLIC_URL]: `https://${context.domain}/notify` };
  return gateway.port === 0 ? {} : { [PUBLIC_URL]: `${formatUrl(gateway)}/notify` };
}

/** Returns the environment with which another service sends mail; empty if mail does not run. */
export function describeMail(
  context: EntryContext,
  urlVariable: string,
  tokenVariable: string,
): Record<string, string> {
  if (!context.running.includes(notifyEntry)) return {};
  return {
    [urlVariable]: formatUrl(getAddress(context, "mail_addr")),
    [tokenVariable]: context.credentials[NOTIFY_TOKEN] ?? "",
  };
}
