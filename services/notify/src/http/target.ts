// Targets of webhooks and inbound rules are checked when they are configured.
import { EgressError, type EgressFetch } from "@platform/kernel/egress";
import { PlatformError } from "@platform/kernel/errors";

/**
 * Sends a HEAD request to find out whether a target is allowed; throws `unprocessable` naming `field` if it is not. A
 * target that does not answer now may answer later; a forbidden address stays forbidden.
 */
export async function requireAllowedTarget(
  fetch: EgressFetch,
  url: string,
  field: string,
): Promise<void> {
  try {
    await fetch(url, { method: "HEAD" });
  } catch (error) {
    if (!(error instanceof EgressError)) throw error;
    if (error.code !== "address_not_allowed" && error.code !== "url_not_allowed") return;
    throw new PlatformError("unprocessable", `${field}: ${error.message}.`, { fields: { field } });
  }
}
