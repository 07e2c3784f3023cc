// Table entry of the tunnel.
import { formatCommand } from "../data-folder/data-folder.ts";
import { join } from "node:path";
import { formatAddress } from "@platform/kernel/config";
import { allowBackups, BACKUP_TOKEN } from "./backup.ts";
import { formatUrl, getAddress, type EntryContext, type ServiceEntry } from "./entry.ts";
import {
  findAutomaticDomain,
  prepareCertificates,
  secureTunnels,
  TUNNEL_LOCAL_KEY,
  wireLocalListener,
} from "./certificates.ts";
import { REVOCATIONS_TOKEN, wireIdentity } from "./identity.ts";

/** Environment variable of the operator's token; clients need it as well. */
export const TUNNEL_TOKEN = "PLATFORM_TUNNEL_AUTH_TOKEN";

/** File URL of the tunnel's main module. */
export const TUNNEL_MAIN = import.meta.resolve("@platform/tunnel/main");

const LOCAL = { key: TUNNEL_LOCAL_KEY, env: "PLATFORM_TUNNEL_LOCAL_ADDR" };

/** The tunnel's relay. */
export const tunnelEntry: ServiceEntry = {
  name: "tunnel",
  label: "tunnel",
  main: TUNNEL_MAIN,
  local: LOCAL,
  findPublicUrl: (context) => {
    const domain = findAutomaticDomain(context);
    const { port } = getAddress(context, "tunnel_addr");
    return domain === undefined ? undefined : `https://tunnel.${domain}:${port}`;
  },
  probes: "http",
  prepare: prepareCertificates,
  backup: { listener: "http" },
  after: ["auth"],
  listeners: [
    {
      name: "http",
      key: "tunnel_addr",
      env: "PLATFORM_TUNNEL_ADDR",
      default: "127.0.0.1:8443",
      description: "Listening address of the tunnel's relay: API, clients and public traffic.",
    },
  ],
  credentials: [TUNNEL_TOKEN, BACKUP_TOKEN],
  uses: [REVOCATIONS_TOKEN],
  // Public traffic reaches the relay directly, by the names of its own domain.
  routes: [],
  configure: (context) => ({
    args: ["server"],
    env: {
      PLATFORM_TUNNEL_ADDR: formatAddress(getAddress(context, "tunnel_addr")),
      PLATFORM_TUNNEL_DATA_DIR: join(context.dataDir, "tunnel"),
      ...allowBackups(context),
      ...(context.domain === undefined
        ? {}
        : { PLATFORM_TUNNEL_DOMAIN: `tunnel.${context.domain}` }),
      [TUNNEL_TOKEN]: context.credentials[TUNNEL_TOKEN] ?? "",
      // Without a role, users of identity may not publish services of this machine.
      PLATFORM_TUNNEL_OPEN_SCOPE: process.env["PLATFORM_TUNNEL_OPEN_SCOPE"] || "tunnel:open",
      ...wireIdentity("tunnel", context, process.env),
      ...wireLocalListener(LOCAL, context),
      ...secureTunnels(context, process.env),
    },
  }),
  describe: (context) => {
    const isAutomatic = findAutomaticDomain(context) !== undefined;
    const url = formatUrl(getAddress(context, isAutomatic ? TUNNEL_LOCAL_KEY : "tunnel_addr"));
    return `tunnels at ${formatTunnelUrl("NAME", context)} · docs ${url}/api/docs`;
  },
  trials: (context) => {
    return [
      {
        command: formatCommand(context.dataDir, "share 3000 --subdomain demo"),
        meaning: `your local port 3000 at ${formatTunnelUrl("demo", context)}`,
      },
    ];
  },
};

function formatTunnelUrl(name: string, context: EntryContext): string {
  const domain = findAutomaticDomain(context);
  const { port } = getAddress(context, "tunnel_addr");
  if (domain !== undefined) return `https://${name}.tunnel.${domain}:${port}`;
  return `http://${name}.localhost:${port}`;
}
