// What `platform up` has to know of a service to run it.
import type { ListenAddress } from "@platform/kernel/config";
import type { ListenerReport } from "@platform/kernel/lifecycle";

/** A listener whose address an operator can choose. */
export interface ListenerEntry {
  /** The name that the service reports it under. */
  name: string;
  /** Key of `platform up`: `gate_addr` gives `--gate-addr`. */
  key: string;
  /** The service's own variable for it. */
  env: string;
  default: string;
  description: string;
}

/** A command for a newcomer. */
export interface Trial {
  command: string;
  meaning: string;
}

/** A route of the generated gateway configuration. */
export interface RouteEntry {
  prefix: string;
  /** Narrows the route to this host. */
  host?: string;
  /** Path and query are forwarded as they came, and bodies have no bound at the gateway. */
  passesAsIs?: boolean;
  stripPrefix: boolean;
  /** Whether anyone may use it without the operator's token. */
  open: boolean;
  /** The listener that it leads to. */
  listener: string;
}

/** What an entry's functions are given. */
export interface EntryContext {
  /** The data directory, absolute. */
  dataDir: string;
  /** The data directory as an operator would type it. */
  dataDirShown: string;
  /** Addresses by listener key; a port that was 0 is the real one as soon as the service is ready. */
  addresses: ReadonlyMap<string, ListenAddress>;
  credentials: Readonly<Record<string, string>>;
  /** The services that run in this `up`, in the order of their start. */
  running: readonly ServiceEntry[];
}

/** One service. A new one is one more entry in the table. */
export interface ServiceEntry {
  /** As in `--only gate`. */
  name: string;
  /** Its name on the first screen. */
  label: string;
  /** File URL of the module that runs it. */
  main: string;
  listeners: readonly ListenerEntry[];
  /** Secrets that it reads from the environment, generated once. */
  credentials: readonly string[];
  /** How the gateway leads to it; none for the gateway itself. */
  routes: readonly RouteEntry[];
  /** Started together with this one, whatever `--only` says. */
  with?: readonly string[];
  /** Prepares files before the first start; returns what the operator should hear. */
  prepare?: (context: EntryContext) => Promise<string[]>;
  /** Arguments and environment of its process. */
  configure: (context: EntryContext) => { args: string[]; env: Record<string, string> };
  /** The rest of its line on the first screen. */
  describe: (context: EntryContext, listeners: readonly ListenerReport[]) => string;
  trials: (context: EntryContext) => Trial[];
}

/** The URL under which a browser or curl on this machine reaches an address. */
export function formatUrl(address: ListenAddress): string {
  return `http://${formatLocalHost(address)}`;
}

/** `localhost:8080` for everything that this machine reaches as localhost, else the address. */
export function formatLocalHost(address: ListenAddress): string {
  const { host, port } = address;
  const local =
    host === undefined ||
    ["0.0.0.0", "::", "::1", "localhost"].includes(host) ||
    host.startsWith("127.");
  if (local) return `localhost:${port}`;
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The address of a listener, which the table of services guarantees to be there. */
export function getAddress(context: EntryContext, key: string): ListenAddress {
  const address = context.addresses.get(key);
  if (address === undefined) throw new Error(`no address for ${key}`);
  return address;
}
