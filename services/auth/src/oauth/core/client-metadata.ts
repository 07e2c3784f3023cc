// Client metadata of our own, beside what RFC 7591 registers.
import { isDeceptive } from "../../user/deceptive-name.ts";
import { errors, type KoaContextWithOIDC } from "oidc-provider";

/** True for the operator's own clients: scopes that administrators marked as first-party need no consent. */
export const FIRST_PARTY = "first_party";
/**
 * Whether a client that is not first-party may have tokens for the platform's services: `requested` by naming them as the
 * resource, `always` without asking. Without it their tokens are for other resources and userinfo.
 */
export const PLATFORM_AUDIENCE = "platform_audience";

/** Answers of userinfo are not signed: a client that wants them so is refused rather than disappointed. */
export const SIGNED_USERINFO = "userinfo_signed_response_alg";

const PLATFORM_AUDIENCES = new Set<unknown>(["requested", "always"]);

/**
 * For the core, which passes a context for clients that register or change themselves: they cannot set what is for
 * administrators to set, only send back what they were shown.
 */
export function validateClientMetadata(
  ctx: KoaContextWithOIDC | undefined,
  key: string,
  value: unknown,
): void {
  if (value === undefined) return;
  if (key === SIGNED_USERINFO)
    throw new errors.InvalidClientMetadata(`${key} is not supported: userinfo answers with JSON`);
  if (ctx !== undefined && value !== ctx.oidc.client?.[key])
    throw new errors.InvalidClientMetadata(`${key} is set by administrators`);
  if (key === FIRST_PARTY && typeof value !== "boolean")
    throw new errors.InvalidClientMetadata(`${key} must be true or false`);
  if (key === PLATFORM_AUDIENCE && !PLATFORM_AUDIENCES.has(value))
    throw new errors.InvalidClientMetadata(`${key} must be "requested" or "always"`);
}

/** What is wrong with the metadata beside what the core finds; undefined if nothing is. */
export function findMetadataProblem(
  metadata: Readonly<Record<string, unknown>>,
  scopes: ReadonlyMap<string, unknown>,
): string | undefined {
  const { scope, grant_types: grants = ["authorization_code"] } = metadata;
  const names = typeof scope === "string" ? scope.split(" ").filter((name) => name !== "") : [];
  const unknown = names.find((name) => !scopes.has(name));
  if (unknown !== undefined) return `scope: there is no scope ${unknown}`;
  const canRefresh = Array.isArray(grants) && grants.includes("refresh_token");
  if (names.includes("offline_access") && !canRefresh)
    return "scope: offline_access needs the grant type refresh_token";
  return findNameProblem(metadata["client_name"], "client_name");
}

function findNameProblem(name: unknown, member: string): string | undefined {
  return typeof name === "string" && isDeceptive(name)
    ? `${member}: it holds characters that show it as something else`
    : undefined;
}
