// Client metadata in addition to RFC 7591.
import { isDeepStrictEqual } from "node:util";
import { errors, type KoaContextWithOIDC } from "oidc-provider";
import { isDeceptive } from "../../user/deceptive-name.ts";

/** True for the operator's own clients: scopes marked as first-party need no consent. */
export const FIRST_PARTY = "first_party";
/**
 * Lets a client that is not first-party get tokens for the platform's services: `requested` if it names them as the
 * resource, `always` without. Without it, its tokens are for other resources and userinfo.
 */
export const PLATFORM_AUDIENCE = "platform_audience";

/**
 * Roles of its users that a client may act with: its tokens carry those of them that the user has. Default: none. They
 * choose topic rules of messaging and policies of storage.
 */
export const ACTING_ROLES = "acting_roles";

/** Signed userinfo responses are not supported; a client that requests them is rejected. */
export const SIGNED_USERINFO = "userinfo_signed_response_alg";

/** Metadata members that only administrators set: they decide on consent, audience and roles. */
export const DECISIVE_MEMBERS: readonly string[] = [FIRST_PARTY, PLATFORM_AUDIENCE, ACTING_ROLES];

const ACTING_ROLES_MAX = 50;
const ROLE_CHARACTERS_MAX = 64;

const PLATFORM_AUDIENCES = new Set<unknown>(["requested", "always"]);

/**
 * Validator for the core, which passes a context for clients that register or change themselves: they can send back
 * members that only administrators set, but not change them.
 */
export function validateClientMetadata(
  ctx: KoaContextWithOIDC | undefined,
  key: string,
  value: unknown,
): void {
  if (value === undefined) return;
  if (key === SIGNED_USERINFO)
    throw new errors.InvalidClientMetadata(`${key} is not supported: userinfo responds with JSON`);
  if (ctx !== undefined && !isDeepStrictEqual(value, ctx.oidc.client?.[key]))
    throw new errors.InvalidClientMetadata(`${key} is set by administrators`);
  if (key === FIRST_PARTY && typeof value !== "boolean")
    throw new errors.InvalidClientMetadata(`${key} must be true or false`);
  if (key === PLATFORM_AUDIENCE && !PLATFORM_AUDIENCES.has(value))
    throw new errors.InvalidClientMetadata(`${key} must be "requested" or "always"`);
  if (key === ACTING_ROLES && !areRoles(value))
    throw new errors.InvalidClientMetadata(
      `${key} must be a list of at most ${ACTING_ROLES_MAX} names of roles`,
    );
}

/** The roles that a client may act with. */
export function readActingRoles(client: Readonly<Record<string, unknown>>): readonly string[] {
  const roles = client[ACTING_ROLES];
  return areRoles(roles) ? roles : [];
}

function areRoles(value: unknown): value is string[] {
  return (
    Array.isArray(value) &&
    value.length <= ACTING_ROLES_MAX &&
    value.every((role) => typeof role === "string" && role.length <= ROLE_CHARACTERS_MAX)
  );
}

/** The problem of metadata that the core does not check; `undefined` if there is none. */
export function findMetadataProblem(
  metadata: Readonly<Record<string, unknown>>,
  scopes: ReadonlyMap<string, unknown>,
): string | undefined {
  const { scope, grant_types: grants = ["authorization_code"] } = metadata;
  const names = typeof scope === "string" ? scope.split(" ").filter((name) => name !== "") : [];
  const unknown = names.find((name) => !scopes.has(name));
  if (unknown !== undefined) return `scope: unknown scope ${unknown}`;
  const canRefresh = Array.isArray(grants) && grants.includes("refresh_token");
  if (names.includes("offline_access") && !canRefresh)
    return "scope: offline_access requires the grant type refresh_token";
  return findNameProblem(metadata["client_name"], "client_name");
}

function findNameProblem(name: unknown, member: string): string | undefined {
  return typeof name === "string" && isDeceptive(name)
    ? `${member}: contains deceptive characters`
    : undefined;
}
