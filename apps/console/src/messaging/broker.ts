// Calls of messaging for the tenant in the address: `tenant`, which administrators choose; "" is the one without a name.
import { findParameter, keepParameter } from "../router/router.ts";
import { callService, config, may, socketUrl } from "../session/session.ts";

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

/** Address of a WebSocket of messaging for the chosen tenant. */
export function brokerSocketUrl(path: string): string {
  return socketUrl("pulse", withTenant(path));
}

function withTenant(path: string): string {
  const tenant = chosenTenant();
  if (tenant === undefined) return path;
  return `${path}${path.includes("?") ? "&" : "?"}${PARAMETER}=${encodeURIComponent(tenant)}`;
}
