// Permissions that a client can convey, which the user who registers or changes it must hold.
import { requireAdministrator, requireHeld, type Grantor } from "../../rbac/grant.ts";
import { generalize, hasPermission } from "../../rbac/permission.ts";
import { FIRST_PARTY, PLATFORM_AUDIENCE, readActingRoles } from "../core/client-metadata.ts";
import { EXCHANGE_PERMISSION, TOKEN_EXCHANGE_GRANT } from "../token/token-exchange.ts";

/** Permissions of each scope by name. */
export type ScopePermissions = ReadonlyMap<string, readonly string[]>;

/**
 * Throws 403 unless the grantor holds every permission that the client can get through its scopes, grant types and
 * roles; first-party clients, the platform's audience and acting roles require an administrator.
 */
export function requireClientGrantable(
  metadata: Readonly<Record<string, unknown>>,
  rolePermissions: readonly string[],
  scopes: ScopePermissions,
  grantor: Grantor,
): void {
  if (metadata[FIRST_PARTY] === true) requireAdministrator(grantor, "manage first-party clients");
  if (metadata[PLATFORM_AUDIENCE] !== undefined)
    requireAdministrator(grantor, "manage clients with the platform's audience");
  if (readActingRoles(metadata).length > 0)
    requireAdministrator(grantor, "manage clients that act with roles");
  requireHeld([...listConveyed(metadata, scopes), ...rolePermissions], grantor);
}

/** Permissions that a client can get through its scopes and grant types. */
export function listConveyed(
  metadata: Readonly<Record<string, unknown>>,
  scopes: ScopePermissions,
): string[] {
  return [
    ...readScope(metadata).flatMap((name) => scopes.get(name) ?? []),
    ...(hasGrant(metadata, TOKEN_EXCHANGE_GRANT) ? [EXCHANGE_PERMISSION] : []),
  ];
}

/** The first scope or grant type that conveys more than `granted`; `undefined` if there is none. */
export function findExcess(
  metadata: Readonly<Record<string, unknown>>,
  scopes: ScopePermissions,
  granted: readonly string[],
): string | undefined {
  if (hasGrant(metadata, TOKEN_EXCHANGE_GRANT) && !hasPermission(granted, EXCHANGE_PERMISSION))
    return TOKEN_EXCHANGE_GRANT;
  return readScope(metadata).find((name) => !isGranted(scopes.get(name), granted));
}

/** A list of scopes with those for one thing alone of which it has the one for all. */
export function addNamed(scope: string, scopes: ScopePermissions): string {
  const listed = scope.split(" ");
  const named = [...scopes.keys()].filter((name) => listed.includes(generalize(name) ?? ""));
  return [...new Set([...listed, ...named])].join(" ");
}

/** Existing scopes of the metadata that convey no more than `granted`, in their order. */
export function limitScope(
  scope: string,
  scopes: ScopePermissions,
  granted: readonly string[],
): string {
  return scope
    .split(" ")
    .filter((name) => scopes.has(name) && isGranted(scopes.get(name), granted))
    .join(" ");
}

// An unknown scope conveys nothing; the core rejects it at registration.
function isGranted(
  permissions: readonly string[] | undefined,
  granted: readonly string[],
): boolean {
  return permissions?.every((permission) => hasPermission(granted, permission)) ?? true;
}

function hasGrant(
  { grant_types: types }: Readonly<Record<string, unknown>>,
  type: string,
): boolean {
  return Array.isArray(types) && types.includes(type);
}

function readScope({ scope }: Readonly<Record<string, unknown>>): string[] {
  return typeof scope === "string" ? scope.split(" ").filter((name) => name !== "") : [];
}
