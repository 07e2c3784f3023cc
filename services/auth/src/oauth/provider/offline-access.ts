// `offline_access` without `prompt=consent`. OpenID Connect Core section 11 has it ignored unless the user consents or other
// conditions permit it, and the core knows the parameter only; here nobody gets it without the user's consent in any case.
import type { Client, KoaContextWithOIDC } from "oidc-provider";

const OFFLINE_ACCESS = "offline_access";

/** For the core, after it has looked at the scope: puts `offline_access` back where it was asked for. */
export async function restoreOfflineAccess(
  ctx: KoaContextWithOIDC,
  scope: unknown,
  client: Client,
): Promise<void> {
  const { params } = ctx.oidc;
  if (params === undefined || !readAsked(ctx).includes(OFFLINE_ACCESS)) return;
  const scopes = typeof scope === "string" ? scope.split(" ") : [];
  const isAllowed = client.scope?.split(" ").includes(OFFLINE_ACCESS) ?? true;
  if (scopes.includes(OFFLINE_ACCESS) || !isAllowed || !client.grantTypeAllowed("refresh_token"))
    return;
  params["scope"] = [...scopes, OFFLINE_ACCESS].join(" ");
}

function readAsked(ctx: KoaContextWithOIDC): string[] {
  const { entities, body } = ctx.oidc;
  const pushed = entities.PushedAuthorizationRequest?.request;
  const given =
    typeof pushed === "string"
      ? readScope(pushed)
      : ctx.method === "POST"
        ? body?.["scope"]
        : ctx.query["scope"];
  return typeof given === "string" ? given.split(" ") : [];
}

// The core keeps a pushed request as a JWT that it does not sign.
function readScope(request: string): unknown {
  const payload = Buffer.from(request.split(".")[1] ?? "", "base64url").toString("utf8");
  return (JSON.parse(payload) as { scope?: unknown }).scope;
}
