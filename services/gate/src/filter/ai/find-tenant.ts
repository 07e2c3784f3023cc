// The tenant to which a request to a model belongs.
import type { GateExchange } from "../../exchange/exchange.ts";

/** The tenant of the token, or of the API key; undefined without one. */
export function findTenant({ userData: { caller, apiKey } }: GateExchange): string | undefined {
  return (caller.kind === "user" ? caller.claims.tenant : undefined) ?? apiKey?.tenant;
}
