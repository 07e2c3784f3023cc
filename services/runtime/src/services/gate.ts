// The gateway's entry in the table of services, and its initial configuration.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatAddress, parseJson } from "@platform/kernel/config";
import { CONSOLE_SECRET } from "./auth.ts";
import { findAutomaticDomain, obtainCertificates, wireLocalListener } from "./certificates.ts";
import { wireConfigStore } from "./config-bucket.ts";
import { CONSOLE_KEY, formatConsoleUrl, isConsoleShared } from "./console.ts";
import {
  formatHost,
  formatInternalUrl,
  formatLocalHost,
  getAddress,
  type EntryContext,
  type RouteEntry,
  type ServiceEntry,
} from "./entry.ts";
import { REVOCATIONS_TOKEN, wireConsole, wireIdentity } from "./identity.ts";

/** The largest value that the gateway accepts. */
const BODY_BYTES_MAX = 1024 ** 4;
/** Environment variable of the operator's token. */
export const GATE_TOKEN = "PLATFORM_GATE_AUTH_TOKEN";

const LOCAL = { key: "gateway_local_addr", env: "PLATFORM_GATE_LOCAL_ADDR" };

/** The gateway. */
export const gateEntry: ServiceEntry = {
  name: "gate",
  label: "gateway",
  main: import.meta.resolve("@platform/gate/main"),
  listeners: [
    {
      name: "http",
      key: "gateway_addr",
      env: "PLATFORM_GATE_ADDR",
      default: "127.0.0.1:8080",
      description: "Listening address of the gateway; :8080 listens on all interfaces.",
    },
    {
      name: "console",
      key: CONSOLE_KEY,
      env: "PLATFORM_GATE_CONSOLE_ADDR",
      default: "127.0.0.1:8081",
      description:
        "Listening address of the web console. `shared`: on the gateway's listener, at the host of console_url.",
    },
  ],
  local: LOCAL,
  findPublicUrl: (context) => {
    const domain = findAutomaticDomain(context);
    return domain === undefined ? undefined : `https://${domain}${formatPort(context)}`;
  },
  probes: "http",
  after: ["hello", "auth", "vault", "pulse", "notify", "tunnel"],
  credentials: [GATE_TOKEN],
  uses: [CONSOLE_SECRET, REVOCATIONS_TOKEN],
  routes: [],
  requires: ["hello"],
  prepare: prepareConfig,
  configure: (context) => ({
    args: ["--config", getConfigPath(context)],
    env: {
      PLATFORM_GATE_ADDR: formatAddress(getAddress(context, "gateway_addr")),
      PLATFORM_GATE_INDEX_FILE: getIndexPath(context),
      [GATE_TOKEN]: context.credentials[GATE_TOKEN] ?? "",
      PLATFORM_GATE_CONSOLE_ADDR: isConsoleShared(context)
        ? "shared"
        : formatAddress(getAddress(context, CONSOLE_KEY)),
      ...wireConsole(context.credentials[CONSOLE_SECRET] ?? "", context, process.env),
      ...wireIdentity("gate", context, process.env),
      ...wireConfigStore(context, process.env),
      ...wireLocalListener(LOCAL, context),
      ...obtainCertificates(context, getConfigPath(context), process.env),
    },
  }),
  describe: (context) =>
    `routes ${context.dataDirShown}/gate/config.json · operator token ${context.dataDirShown}/credentials.env`,
  trials(context) {
    const { flag, url } = describeGateway(context);
    const host = `${flag}${url}`;
    const source = context.credentialsShown;
    return [
      { command: `curl ${host}/hello`, meaning: "forwarded to the sample in examples/hello" },
      { command: `curl -N ${host}/hello/events`, meaning: "a stream of events" },
      {
        command: `(. ${source}; curl -H "Authorization: Bearer $${GATE_TOKEN}" ${host}/api/v1/routes)`,
        meaning: "list the routes as operator",
      },
    ];
  },
};

/** The gateway's address in a command of curl, and the option that it needs. */
export function describeGateway(context: EntryContext): { flag: string; url: string } {
  const domain = findAutomaticDomain(context);
  if (domain !== undefined) return { flag: "", url: `https://${domain}${formatPort(context)}` };
  const address = formatLocalHost(getAddress(context, "gateway_addr"));
  // The certificate is for a public name.
  return context.secure.has("gate")
    ? { flag: "-k ", url: `https://${address}` }
    : { flag: "", url: address };
}

function formatPort(context: EntryContext): string {
  const { port } = getAddress(context, "gateway_addr");
  return port === 443 ? "" : `:${port}`;
}

/** The page at `/`. */
export function getIndexPath(context: EntryContext): string {
  return join(context.dataDir, "gate", "index.html");
}

/** The gateway's configuration file. */
export function getConfigPath({ dataDir }: Pick<EntryContext, "dataDir">): string {
  return join(dataDir, "gate", "config.json");
}

// An existing file belongs to the operator: missing and differing routes are only reported.
async function prepareConfig(context: EntryContext): Promise<string[]> {
  const path = getConfigPath(context);
  const wanted = context.running.flatMap((entry) =>
    entry.routes.map((route) => buildRoute(context, entry, route)),
  );
  const existing = await readConfig(path);
  if (existing === undefined) {
    await mkdir(join(context.dataDir, "gate"), { recursive: true, mode: 0o700 });
    await writeFile(path, `${JSON.stringify({ routes: wanted }, null, 2)}\n`, {
      flag: "wx",
      mode: 0o600,
    });
    return [];
  }
  const host = isConsoleShared(context) ? new URL(formatConsoleUrl(context)).hostname : undefined;
  const beside = existing.filter((item) => host !== undefined && item["host"] === host);
  const notes = beside.map(
    ({ prefix }) =>
      `${path} has the route ${host}${String(prefix)} at the console's host: its pages can act for the person who is signed in`,
  );
  const differences = wanted.flatMap((route) => {
    const found = existing.find(
      (item) => item["prefix"] === route.prefix && item["host"] === route.host,
    );
    if (found === undefined) {
      return [`${path} has no route ${route.host ?? ""}${route.prefix} to ${route.target}`];
    }
    const target = found["target"];
    return typeof target === "string" && target !== route.target
      ? [`${path} routes ${route.prefix} to ${target}, but the service listens at ${route.target}`]
      : [];
  });
  return [...notes, ...differences];
}

function buildRoute(context: EntryContext, entry: ServiceEntry, route: RouteEntry) {
  const listener = entry.listeners.find(({ name }) => name === route.listener);
  if (listener === undefined) throw new Error(`${entry.name} has no listener ${route.listener}`);
  return {
    prefix: route.prefix,
    ...(route.subdomain === undefined ? {} : { host: formatHost(route.subdomain, context) }),
    access_log: true,
    target: formatInternalUrl(getAddress(context, listener.key)),
    ...(route.stripPrefix ? { strip_prefix: true } : {}),
    ...(route.passesAsIs === true ? { raw_path: true, max_body_size: BODY_BYTES_MAX } : {}),
    ...(route.open ? { auth: { type: "none" } } : {}),
  };
}

// The gateway reports syntax errors when it starts; here an invalid file has no routes.
async function readConfig(path: string): Promise<Record<string, unknown>[] | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
  try {
    const { value } = parseJson(text);
    const routes =
      typeof value === "object" && value !== null && "routes" in value ? value.routes : [];
    return Array.isArray(routes)
      ? routes.filter((route) => typeof route === "object" && route !== null)
      : [];
  } catch {
    return [];
  }
}
