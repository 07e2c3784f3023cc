// Calls of messaging for the tenant in the address: `tenant`, which administrators choose; "" is the one without a name.
import { findParameter, keepParameter } from "../router/router.ts";
import { api, callService, config, may, socketUrl } from "../session/session.ts";

const PARAMETER = "tenant";

// Links between pages of messaging stay with the tenant.
keepParameter("/messaging", PARAMETER);

/** The chosen tenant; undefined for that of the session. */
export function chosenTenant(): string | undefined {
  return findParameter(PARAMETER);
}

/** True if the session may act for all tenants. */
export function mayChooseTenant(): boolean {
  return may("pulse:admin");
}

/** True if topics belong to tenants: identity names one for each user. */
export function hasTenants(tenants: Iterable<string>): boolean {
  return config.value?.mode === "platform" || [...tenants].some((tenant) => tenant !== "");
}

/** Calls an operation of messaging for the chosen tenant. */
export async function callBroker<Answer>(
  path: string,
  options?: Parameters<typeof callService>[2],
): Promise<Answer> {
  return await callService<Answer>("pulse", withTenant(path), options);
}

/** Calls an operation that lists what all tenants have, or the chosen one, or that of the session. */
export async function callAllTenants<Answer>(path: string): Promise<Answer> {
  if (!mayChooseTenant() || chosenTenant() !== undefined) return await callBroker<Answer>(path);
  return await callService<Answer>("pulse", addTenant(path, "*"));
}

/** Calls an operation for the tenant of a row of such a list; undefined if the row does not have one. */
export async function callTenant<Answer>(
  tenant: string | undefined,
  path: string,
  options?: Parameters<typeof callService>[2],
): Promise<Answer> {
  if (tenant === undefined) return await callBroker<Answer>(path, options);
  return await callService<Answer>("pulse", addTenant(path, tenant), options);
}

/** Address of an operation of messaging for the chosen tenant. */
export function brokerPath(path: string): string {
  return api("pulse", withTenant(path));
}

/** Address of a WebSocket of messaging for the chosen tenant. */
export function brokerSocketUrl(path: string): string {
  return socketUrl("pulse", withTenant(path));
}

function withTenant(path: string): string {
  const tenant = chosenTenant();
  return tenant === undefined ? path : addTenant(path, tenant);
}

function addTenant(path: string, tenant: string): string {
  return `${path}${path.includes("?") ? "&" : "?"}${PARAMETER}=${encodeURIComponent(tenant)}`;
}
