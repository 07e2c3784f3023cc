// Description of a service for `platform up`.
import { formatAddress, type ListenAddress } from "@platform/kernel/config";
import type { ListenerReport } from "@platform/kernel/lifecycle";
import type { Launch } from "../supervisor/supervised-process.ts";

/** A listener with a configurable address. */
interface ListenerEntry {
  /** Its name in the service's reports. */
  name: string;
  /** Key of `platform up`; `gateway_addr` becomes `--gateway-addr`. */
  key: string;
  /** Environment variable of the service. */
  env: string;
  default: string;
  description: string;
}

/** A command for new users to try. */
export interface Trial {
  command: string;
  meaning: string;
}

/** A route of the generated gateway configuration. */
export interface RouteEntry {
  prefix: string;
  /** Narrows the route to this name below the domain: `vault` matches `vault.localhost`. */
  subdomain?: string;
  /** Forwards path and query unchanged, and bodies of any size. */
  passesAsIs?: boolean;
  stripPrefix: boolean;
  /** True if requests need no operator token. */
  open: boolean;
  /** Name of the target listener. */
  listener: string;
}

/** Context of an entry's functions. */
export interface EntryContext {
  /** Absolute path of the data directory. */
  dataDir: string;
  /** The data directory as a user would type it. */
  dataDirShown: string;
  /** The file of generated credentials, quoted for a shell. */
  credentialsShown: string;
  /** Addresses by listener key. No port is 0. The console has none on the gateway's listener. */
  addresses: ReadonlyMap<string, ListenAddress>;
  /** Chosen address at which browsers open the web console; undefined derives it. */
  consoleUrl: string | undefined;
  /** Public domain, whose subdomains are routed to services; undefined on a machine without one. */
  domain: string | undefined;
  /** True if the gateway obtains certificates for the domain (`--auto-tls`). */
  hasAutomaticTls: boolean;
  credentials: Readonly<Record<string, string>>;
  /** Names of services whose listener for clients uses TLS, once they are ready. */
  secure: ReadonlySet<string>;
  /** The services of this `up`, in start order. */
  running: readonly ServiceEntry[];
}

export interface ServiceEntry {
  /** Short name: in log lines, folders and variables, and for `--only gate`. */
  name: string;
  /** Product name: in the banner, and for `--only gateway`. */
  label: string;
  /** File URL of its main module. */
  main: string;
  listeners: readonly ListenerEntry[];
  /** Its listener without TLS for this machine, which it opens if its first one has TLS. Its port is chosen at the start. */
  local?: { key: string; env: string };
  /** Address for people, if it is another than that of its first listener. */
  findPublicUrl?: (context: EntryContext) => string | undefined;
  /** Name of the listener that serves `/readyz`. */
  probes?: string;
  /** Set if it sends its own backup, to holders of the backup token. */
  backup?: {
    /** Name of the listener. */
    listener: string;
  };
  /** Environment variables of its secrets, which are generated once: it accepts them from others. */
  credentials: readonly string[];
  /** Environment variables of other services' secrets that it presents to them. */
  uses?: readonly string[];
  /** Secrets of the first start, which are not generated once `unless`, a file of the data directory, exists. */
  firstCredentials?: { names: readonly string[]; unless: string };
  /** Routes of the gateway to this service. */
  routes: readonly RouteEntry[];
  /** Names of services that `--only` starts with this one. */
  requires?: readonly string[];
  /** Names of services whose addresses it uses. */
  after?: readonly string[];
  /** True if it calls the services of `after` before it starts. */
  needsReady?: boolean;
  /** Prepares files before the service starts; returns notes for the operator. */
  prepare?: (context: EntryContext) => Promise<string[]>;
  /** Set for a project: its absolute folder, and the reason for which it runs. */
  project?: { folder: string; kind: "own" | "kept" | "joined" };
  /** The reason why a message of its process is not understood, which ends the process; undefined if it is. */
  refuse?: (message: unknown) => string | undefined;
  /** The launch of its process; called before each start. */
  configure: (context: EntryContext) => Launch;
  /** Called after `configure` if its process starts with the result. */
  onLaunch?: (context: EntryContext) => void;
  /** The rest of its line in the banner. */
  describe: (context: EntryContext, listeners: readonly ListenerReport[]) => string;
  trials: (context: EntryContext) => Trial[];
}

/** Returns the URL of an address for clients on this machine. */
export function formatUrl(address: ListenAddress): string {
  return `http://${formatLocalHost(address)}`;
}

/** Returns the URL of a listener, by its name: `https` is one with TLS. */
export function formatListenerUrl({ name, host, port }: ListenerReport): string {
  return `${name === "https" ? "https" : "http"}://${formatLocalHost({ host, port })}`;
}

/**
 * Returns the report of an entry's listener, by the name of that. One with TLS is reported as `https`; a listener for this
 * machine beside it is the one that others of the platform reach: certificates are for public names.
 */
export function findReport(
  reports: readonly ListenerReport[],
  name: string,
): ListenerReport | undefined {
  const local = name === "http" ? reports.find((report) => report.name === "local") : undefined;
  return local ?? findPublicReport(reports, name);
}

/** Returns the report of the listener that clients reach, by the name in the entry. */
export function findPublicReport(
  reports: readonly ListenerReport[],
  name: string,
): ListenerReport | undefined {
  return reports.find(
    (report) => report.name === name || (report.name === "https" && name === "http"),
  );
}

/**
 * Returns the report of the listener by which this platform reaches a service: the first one of its entry. Others may be open
 * before it, such as that of received mail.
 */
export function findMainListener(
  { listeners: [main] }: ServiceEntry,
  reports: readonly ListenerReport[],
): ListenerReport | undefined {
  return (main && findReport(reports, main.name)) ?? reports[0];
}

/** Returns the address of a service for people; empty if it has no listener. */
export function formatPublicUrl(
  entry: ServiceEntry,
  context: EntryContext,
  reports: readonly ListenerReport[],
): string {
  const chosen = entry.findPublicUrl?.(context);
  if (chosen !== undefined) return chosen;
  const [main] = entry.listeners;
  const report = (main && findPublicReport(reports, main.name)) ?? reports[0];
  return report === undefined ? "" : formatListenerUrl(report);
}

/** Returns `localhost:8080` for addresses that include the loopback interface, otherwise the address itself. */
export function formatLocalHost(address: ListenAddress): string {
  const { host, port } = address;
  const local =
    host === undefined ||
    ["0.0.0.0", "::", "::1", "localhost"].includes(host) ||
    host.startsWith("127.");
  if (local) return `localhost:${port}`;
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Returns the URL of an address for other services on this machine; localhost may be another interface for them. */
export function formatInternalUrl({ host, port }: ListenAddress): string {
  const isAny = host === undefined || host === "0.0.0.0" || host === "::";
  return `http://${formatAddress({ host: isAny ? "127.0.0.1" : host, port })}`;
}

/** Returns the host name of a subdomain: `vault.localhost` without a public domain. */
export function formatHost(
  subdomain: string,
  { domain = "localhost" }: Pick<EntryContext, "domain">,
): string {
  return `${subdomain}.${domain}`;
}

/** Returns true if a service is part of this `up`. */
export function isRunning(name: string, { running }: Pick<EntryContext, "running">): boolean {
  return running.some((entry) => entry.name === name);
}

/** Returns the address of a listener; throws for an unknown key. */
export function getAddress(context: Pick<EntryContext, "addresses">, key: string): ListenAddress {
  const address = context.addresses.get(key);
  if (address === undefined) throw new Error(`no address for ${key}`);
  return address;
}
