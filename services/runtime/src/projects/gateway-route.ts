// The route of a project at the gateway: all paths of a host of its own, so that pages of one application cannot act for
// users of another.
import { ApiError } from "../client/api-client.ts";
import { callGateway } from "../client/gateway.ts";
import type { Target } from "../client/target.ts";
import { formatHost, formatInternalUrl, getAddress, type EntryContext } from "../services/entry.ts";
import { PROJECT_KEY } from "../services/project.ts";

/**
 * Registers the route in place of that of the project's last run. A route that the operator has set for the host stays:
 * the returned note names it if it leads elsewhere.
 */
export async function publishRoute(
  target: Target,
  context: EntryContext,
  name: string,
): Promise<string[]> {
  const host = formatHost(name, context);
  const url = formatInternalUrl(getAddress(context, PROJECT_KEY));
  const route = { method: "*", path: "/*", host, access_log: true, auth: { type: "none" } };
  try {
    await register(target, name, { base_url: url, routes: [route] });
    return [];
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
    const routes = (await callGateway(target, "GET", "/api/v1/routes")) as {
      host?: string;
      prefix: string;
      target?: unknown;
    }[];
    const other = routes.find((one) => one.host === host && one.prefix === "/");
    if (other?.target === url) return [];
    return [
      `the gateway keeps the route ${host}/ of its configuration to ${String(other?.target)}, and ${name} listens at ${url}: remove that route, and restart the project`,
    ];
  }
}

/** Removes the route of a project. */
export async function withdrawRoute(target: Target, name: string): Promise<void> {
  await register(target, name, { base_url: "http://127.0.0.1", routes: [] });
}

async function register(
  target: Target,
  name: string,
  routes: { base_url: string; routes: readonly object[] },
): Promise<void> {
  const service = `project-${name}`;
  await callGateway(target, "POST", "/api/v1/routes/register", { service, ...routes });
}
