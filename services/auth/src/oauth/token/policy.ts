// Existing scopes, and those that users and clients may have.
import type { Clock } from "@platform/kernel/time";
import { MANAGEMENT_SCOPES } from "../../database/rbac.ts";
import { hasPermission, intersectPermissions } from "../../rbac/permission.ts";
import {
  OPENID_SCOPES,
  USE_SCOPE,
  type Rbac,
  type Rights,
  type ScopeRights,
} from "../../rbac/rights.ts";

const CLIENT_RIGHTS_MS = 1_000;
const CLIENTS_MAX = 10_000;

/** The policy as far as tokens need it. */
export class TokenPolicy {
  readonly #rbac: Rbac;
  readonly #clock: Clock;
  readonly #clientRights = new Map<string, { rights: Promise<Rights>; until: number }>();
  #scopes: ReadonlyMap<string, readonly string[]> = new Map();
  #requirements: ReadonlyMap<string, ScopeRights> = new Map();
  #names: ReadonlySet<string> = new Set(OPENID_SCOPES);
  #firstParty: ReadonlySet<string> = new Set(OPENID_SCOPES);

  constructor(rbac: Rbac, clock: Clock) {
    this.#rbac = rbac;
    this.#clock = clock;
  }

  /** All scopes, including those of OpenID Connect. */
  get scopeNames(): ReadonlySet<string> {
    return this.#names;
  }

  /** Permissions conveyed by each scope, including those of its roles; empty for scopes of OpenID Connect. */
  get scopePermissions(): ReadonlyMap<string, readonly string[]> {
    return this.#scopes;
  }

  /** True if first-party clients get the scope without the user's consent. */
  isFirstParty(scope: string): boolean {
    return this.#firstParty.has(scope);
  }

  /** The version that new tokens carry. */
  readVersion(): Promise<number> {
    return this.#rbac.readPolicyVersion();
  }

  /** Reads the scopes; true if they have changed. */
  async refresh(): Promise<boolean> {
    const scopes = await this.#rbac.listScopeRights();
    const before = [...this.#names].join(" ");
    this.#scopes = new Map([
      ...[...OPENID_SCOPES, USE_SCOPE].map((name) => [name, []] as const),
      ...scopes.map((scope) => [scope.name, listConveyed(scope)] as const),
    ]);
    this.#requirements = new Map(scopes.map((scope) => [scope.name, scope]));
    this.#firstParty = new Set([
      ...OPENID_SCOPES,
      ...scopes.filter(({ first_party }) => first_party).map(({ name }) => name),
    ]);
    this.#names = new Set(this.#scopes.keys());
    return before !== [...this.#names].join(" ");
  }

  /** The current rights of a user. */
  findUserRights(userId: string): Promise<Rights> {
    return this.#rbac.findRights({ kind: "user", id: userId });
  }

  /**
   * The rights of a client, at most a second old, because machines request tokens often. Concurrent callers share one
   * read: after each second, all requests in flight would read them.
   */
  findClientRights(clientId: string): Promise<Rights> {
    const now = this.#clock.monotonicMs();
    const known = this.#clientRights.get(clientId);
    if (known !== undefined && now < known.until) return known.rights;
    const read = {
      rights: this.#rbac.findRights({ kind: "client", id: clientId }),
      until: now + CLIENT_RIGHTS_MS,
    };
    if (this.#clientRights.size >= CLIENTS_MAX) this.#clientRights.clear();
    this.#clientRights.set(clientId, read);
    read.rights.catch(() => {
      if (this.#clientRights.get(clientId) === read) this.#clientRights.delete(clientId);
    });
    return read.rights;
  }

  /** True if a subject with these rights may have the scope. Without `rights` it must only exist. */
  isPermitted(name: string, rights: Rights | undefined): boolean {
    if (OPENID_SCOPES.includes(name)) return true;
    const needed = this.#requirements.get(name);
    if (needed === undefined) return false;
    if (rights === undefined) return true;
    return (
      needed.permissions.some((permission) => hasPermission(rights.permissions, permission)) ||
      needed.roles.some((role) => hasRole(rights, role))
    );
  }

  /** True if the scope conveys the permission, provided that the subject has it. */
  conveys(scope: string | undefined, permission: string): boolean {
    return hasPermission(this.#listConveyed(scope?.split(" ") ?? []), permission);
  }

  /**
   * Limits a subject's rights to those that the token conveys. Tokens of the built-in clients convey all rights,
   * including permissions without a scope, unless a smaller scope was requested.
   */
  limit(rights: Rights, scope: readonly string[], isBuiltIn: boolean): Rights {
    const isWhole =
      isBuiltIn &&
      [...MANAGEMENT_SCOPES].every(
        (name) =>
          !this.#scopes.has(name) || scope.includes(name) || !this.isPermitted(name, rights),
      );
    if (isWhole) return rights;
    const conveyed = this.#listConveyed(scope);
    return { ...rights, permissions: intersectPermissions(rights.permissions, conveyed) };
  }

  #listConveyed(scope: readonly string[]): readonly string[] {
    return scope.flatMap((name) => this.#scopes.get(name) ?? []);
  }
}

function listConveyed({ permissions, roles }: ScopeRights): readonly string[] {
  if (roles.length === 0) return permissions;
  return [...new Set([...permissions, ...roles.flatMap((role) => role.permissions)])];
}

// Holding all permissions of a role counts as having the role: administrators need no bindings.
function hasRole(rights: Rights, { name, permissions }: ScopeRights["roles"][number]): boolean {
  if (rights.roles.includes(name)) return true;
  return (
    permissions.length > 0 &&
    permissions.every((permission) => hasPermission(rights.permissions, permission))
  );
}
