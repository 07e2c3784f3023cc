// Access to the request that the core is serving.
import { Provider } from "oidc-provider";
import { GRANTED_MEMBER } from "../core/core-client.ts";
import { readThumbprint } from "../token/dpop-proof.ts";

/** Permissions of the initial access token of the request. */
export function readGranted(): readonly string[] {
  const { InitialAccessToken: token } = Provider.ctx?.oidc.entities ?? {};
  const granted: unknown = (token as Record<string, unknown> | undefined)?.[GRANTED_MEMBER];
  return Array.isArray(granted) ? (granted as string[]) : [];
}

/** The client of the request and the thumbprint of its DPoP key; both `undefined` outside of a request. */
export function readCoreRequest(): { clientId: string | undefined; jkt: string | undefined } {
  const ctx = Provider.ctx;
  const proof = ctx?.get("DPoP");
  return {
    clientId: ctx?.oidc.client?.clientId,
    jkt: proof === undefined || proof === "" ? undefined : readThumbprint(proof),
  };
}
