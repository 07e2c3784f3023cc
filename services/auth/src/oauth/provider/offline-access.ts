// `offline_access` without `prompt=consent`. OpenID Connect Core section 11 requires it to be ignored unless the user
// consents or other conditions are met, and the core only accepts the parameter. Here it always requires the user's
// consent.
import type { Client, KoaContextWithOIDC } from "oidc-provider";

const OFFLINE_ACCESS = "offline_access";

/** Called by the core after it has filtered the scope: restores a requested `offline_access`. */
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

// The core stores a pushed request as an unsigned JWT.
function readScope(request: string): unknown {
  const payload = Buffer.from(request.split(".")[1] ?? "", "base64url").toString("utf8");
  return (JSON.parse(payload) as { scope?: unknown }).scope;
}
