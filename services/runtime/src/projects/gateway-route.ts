// The route of a project at the gateway: all paths of a host of its own, so that pages of one application cannot act for
// users of another.
import { ApiError } from "../client/api-client.ts";
import { callGateway } from "../client/gateway.ts";
import type { Target } from "../client/target.ts";
import { formatHost, formatInternalUrl, getAddress, type EntryContext } from "../services/entry.ts";
import { PROJECT_KEY } from "../services/project.ts";

/** Routes of a version of a project. */
export interface PublishedRoutes {
  name: string;
  /** The port of the version. */
  port: number;
  routes: readonly object[];
}

/**
 * Registers the routes in place of those of the project's last version. A route that the operator has set for the host stays:
 * the returned note names it if it leads elsewhere, or if there are rules, which do not apply then.
 */
export async function publishRoutes(
  target: Target,
  context: EntryContext,
  { name, port, routes }: PublishedRoutes,
): Promise<string[]> {
  const host = formatHost(name, context);
  const url = formatInternalUrl(getAddress(context, PROJECT_KEY));
  try {
    await register(target, name, { base_url: `http://127.0.0.1:${port}`, routes });
    return [];
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error;
    // Those of the last version lead to a port that another program may have by now.
    await withdrawRoute(target, name);
    const known = (await callGateway(target, "GET", "/api/v1/routes")) as {
      host?: string;
      prefix: string;
      target?: unknown;
    }[];
    const other = known.find((one) => one.host === host && one.prefix === "/");
    if (other === undefined) throw error;
    if (other.target === url) {
      const effect = `the gateway keeps the route ${host}/ of its configuration, with its own rules: those of ${name} are not applied, and routes whose rules restrict access answer 403`;
      return routes.length > 1 || "request_headers" in routes[0]! ? [effect] : [];
    }
    return [
      `the gateway keeps the route ${host}/ of its configuration to ${String(other.target)}, and ${name} listens at ${url}: remove that route, and restart the project`,
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
