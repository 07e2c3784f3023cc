// Which scopes exist, and which of them a user or a client is permitted.
import type { Clock } from "@platform/kernel/time";
import { hasPermission } from "../rbac/permission.ts";
import type { Rbac, Rights } from "../rbac/rights.ts";

/** Scopes of OpenID Connect, which need no role. */
export const oidcScopes: readonly string[] = ["openid", "offline_access", "profile", "email"];

const clientRightsMs = 1_000;
const clientsMax = 10_000;

/** The policy as tokens need it. */
export class TokenPolicy {
  readonly #rbac: Rbac;
  readonly #clock: Clock;
  readonly #clientRights = new Map<string, { rights: Rights; until: number }>();
  #scopes: ReadonlyMap<string, readonly string[]> = new Map();
  #names: ReadonlySet<string> = new Set(oidcScopes);

  constructor(rbac: Rbac, clock: Clock) {
    this.#rbac = rbac;
    this.#clock = clock;
  }

  /** All scopes, those of OpenID Connect among them. */
  get scopeNames(): ReadonlySet<string> {
    return this.#names;
  }

  /** Reads the scopes; whether there are others than before. */
  async refresh(): Promise<boolean> {
    const scopes = await this.#rbac.listScopes();
    const before = [...this.#names].join(" ");
    this.#scopes = new Map(scopes.map(({ name, permissions }) => [name, permissions]));
    this.#names = new Set([...oidcScopes, ...this.#scopes.keys()]);
    return before !== [...this.#names].join(" ");
  }

  /** A user's rights, as they are now. */
  findUserRights(userId: string): Promise<Rights> {
    return this.#rbac.findRights({ kind: "user", id: userId });
  }

  /** A client's rights, at most a second old: machines ask for tokens often. */
  async findClientRights(clientId: string): Promise<Rights> {
    const now = this.#clock.monotonicMs();
    const known = this.#clientRights.get(clientId);
    if (known !== undefined && now < known.until) return known.rights;
    const rights = await this.#rbac.findRights({ kind: "client", id: clientId });
    if (this.#clientRights.size >= clientsMax) this.#clientRights.clear();
    this.#clientRights.set(clientId, { rights, until: now + clientRightsMs });
    return rights;
  }

  /**
   * The scopes that may be issued to a client for someone with these rights. A client without a list of its own has
   * those of OpenID Connect only. Without `rights`, which is before anyone has signed in, roles are left out of account.
   */
  permit(clientScope: string | undefined, rights: Rights | undefined): string[] {
    const allowed = clientScope === undefined ? oidcScopes : clientScope.split(" ");
    return allowed.filter((name) => this.#isPermitted(name, rights));
  }

  #isPermitted(name: string, rights: Rights | undefined): boolean {
    if (oidcScopes.includes(name)) return true;
    const needed = this.#scopes.get(name);
    if (needed === undefined) return false;
    if (rights === undefined) return true;
    return needed.some((permission) => hasPermission(rights.permissions, permission));
  }

  /** Every scope that someone with these rights may have, those of OpenID Connect among them. */
  permitAll(rights: Rights): string[] {
    return [...this.#names].filter((name) => this.#isPermitted(name, rights));
  }
}
