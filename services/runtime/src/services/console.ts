// The place of the web console: a listener of its own, or a host of the gateway's listener.
import {
  formatHost,
  formatUrl,
  getAddress,
  isRunning,
  type EntryContext,
  type ServiceEntry,
} from "./entry.ts";

/** Configuration key of the console's address. */
export const CONSOLE_KEY = "console_addr";

type Place = Pick<EntryContext, "addresses" | "consoleUrl" | "domain">;

/** True if the console is on the gateway's listener (`--console-addr shared`): it has no address then. */
export function isConsoleShared({ addresses }: Pick<Place, "addresses">): boolean {
  return !addresses.has(CONSOLE_KEY);
}

/**
 * Returns the address at which browsers open the web console. On the gateway's listener it has a host of its own, because
 * pages of other programs at the same host would share its origin.
 */
export function formatConsoleUrl(context: Place): string {
  const { consoleUrl, domain } = context;
  if (consoleUrl !== undefined) return consoleUrl.replace(/\/$/, "");
  if (!isConsoleShared(context)) return formatUrl(getAddress(context, CONSOLE_KEY));
  const host = formatHost("console", context);
  return domain === undefined
    ? `http://${host}:${getAddress(context, "gateway_addr").port}`
    : `https://${host}`;
}

/**
 * Throws if the console on the gateway's listener would take the host of something else, or share its origin with it;
 * returns notes for the operator.
 */
export function checkConsole(context: Place, entries: readonly ServiceEntry[]): string[] {
  if (!isConsoleShared(context) || !isRunning("gate", { running: entries })) return [];
  const text = formatConsoleUrl(context);
  const { origin, hostname, protocol } = new URL(text);
  const other = "choose another with --console-url, such as https://console.example.com";
  if (text !== origin)
    throw new Error(`--console-url: ${text} has more than a scheme, a host and a port; ${other}`);
  if (["localhost", "127.0.0.1", "[::1]"].includes(hostname)) {
    throw new Error(
      `--console-url: on the gateway's listener the console would take ${hostname} from all routes; ${other}`,
    );
  }
  for (const { name, label, project, routes } of entries) {
    const hosts = routes.flatMap(({ subdomain }) => subdomain ?? []);
    if (project !== undefined) hosts.push(name);
    const isTaken = hosts.some((host) => formatHost(host, context) === hostname);
    if (isTaken)
      throw new Error(
        `--console-url: ${hostname} is the host of ${label}, whose pages could act as the console; ${other}`,
      );
  }
  const isPublic = protocol === "http:" && !hostname.endsWith(".localhost");
  return isPublic
    ? [
        `the console at ${text} is not encrypted: others in the network can read passwords and sessions; use https`,
      ]
    : [];
}
